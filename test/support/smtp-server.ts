import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { temporaryFolder } from './temporary-folder.ts';

/** Debian's Python, which has its packages. */
const python = '/usr/bin/python3';

/** For a test's `skip`: false if the mail server of tests can run. Throws instead if ARTSEAL_TEST_REQUIRE_ALL is set. */
export function skipUnlessMailServer(): string | false {
  try {
    execFileSync(python, ['-c', 'import aiosmtpd'], { stdio: 'ignore' });
    return false;
  } catch {
    const reason = 'not installed: python3-aiosmtpd';
    if (process.env.ARTSEAL_TEST_REQUIRE_ALL) throw new Error(reason);
    return reason;
  }
}

/** A mail that the server has stored. */
export interface StoredMail {
  readonly from: string;
  readonly to: string;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** A mail server in a process of its own, as smtp_server.py describes it. */
export type SmtpServer = Awaited<ReturnType<typeof startSmtpServer>>;

/** Starts a mail server, which ends after the test. It waits at each step until `atStep`, if there is one, resolves. */
export async function startSmtpServer(
  t: Pick<TestContext, 'after'>,
  { password, atStep = () => undefined }: { password?: string; atStep?: AtStep } = {},
) {
  const file = join(temporaryFolder(t), 'mails');
  const words = [join(import.meta.dirname, 'smtp_server.py'), file];
  if (password !== undefined) words.push('--password', password);
  const child = spawn(python, words, { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const port = Promise.withResolvers<number>();
  createInterface(child.stdout).on('line', async (line) => {
    if (/^\d+$/.test(line)) return port.resolve(Number(line));
    const [number, step = '', address = ''] = line.split(' ');
    await atStep(step as Step, address);
    child.stdin.write(`${number}\n`);
  });
  child.once('close', () => port.reject(new Error('the mail server ended')));
  child.stdin.on('error', () => {});
  const url = `smtp://${password === undefined ? '' : 'artseal@'}127.0.0.1:${await port.promise}`;
  return {
    url,
    /** The mails that it has stored, in order. */
    mails: (): readonly StoredMail[] => {
      if (!existsSync(file)) return [];
      const lines = readFileSync(file, 'utf8').split('\n');
      assert.equal(lines.pop(), '');
      return lines.map((line) => JSON.parse(line));
    },
    /** Ends it. Resolves when nothing listens there any more. */
    kill: async (): Promise<void> => {
      const closed = once(child, 'close');
      child.kill('SIGKILL');
      await closed;
    },
  };
}

/** A step of a mail, at which the server waits. */
export type Step = 'CONNECT' | 'RCPT' | 'DATA' | 'STORED';

type AtStep = (step: Step, address: string) => Promise<void> | undefined;
