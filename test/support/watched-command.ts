import assert from 'node:assert/strict';
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { delimiter, dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { artsealCommand, executable, projectFolder } from './artseal-command.ts';
import type { CommandResult } from './command.ts';
import { anyAddresses } from './free-address.ts';

const binaries = [join(projectFolder, 'node_modules', '.bin'), ...(executable ? [dirname(executable)] : [])];
const readyLine = /^artseal ready public=(\S+) internal=(\S+)(?: metrics=(\S+))?$/m;

/** How long a command may take before it counts as hung, in milliseconds; far longer than any needs. */
const hungAfterMs = 60_000;

/** A command under way, all of whose output is kept. */
export interface WatchedCommand {
  readonly child: ChildProcessWithoutNullStreams;
  stdout(): string;
  stderr(): string;
  /** Waits for its end; the exit code, null if a signal ended it, HUNG if it had to be killed after `limitMs`. */
  end(limitMs?: number): Promise<number | null | 'HUNG'>;
}

/** A watched `artseal serve` that is ready. */
export interface WatchedService extends WatchedCommand {
  readonly publicUrl: string;
  readonly internalUrl: string;
  /** Where its metrics are. */
  readonly metricsUrl: string;
  /** Sends a signal and waits for the end, as `end` does. */
  stop(signal?: NodeJS.Signals, limitMs?: number): Promise<number | null | 'HUNG'>;
}

/** The environment of the test without settings of its own, with the project's commands first, a free port for metrics, and these. */
export function commandEnvironment(env: Record<string, string>): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('ARTSEAL_') && name !== 'NODE_TEST_CONTEXT',
  );
  const path = [...binaries, process.env.PATH].join(delimiter);
  return {
    ...Object.fromEntries(inherited),
    PATH: path,
    ARTSEAL_METRICS_ADDR: anyAddresses.ARTSEAL_METRICS_ADDR,
    ...env,
  };
}

/** Starts a program in the project's folder; killed after the test. */
function watch(
  test: Pick<TestContext, 'after'>,
  program: string,
  words: readonly string[],
  env: Record<string, string>,
): WatchedCommand {
  const child = spawn(program, words, { env: commandEnvironment(env), cwd: projectFolder });
  test.after(() => child.kill('SIGKILL'));
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk) => {
      output[name] += chunk;
    });
  }
  child.stdin.on('error', () => {});
  const ended = once(child, 'close').then(([code]) => code as number | null);
  return {
    child,
    stdout: () => output.stdout,
    stderr: () => output.stderr,
    end: async (limitMs = hungAfterMs) => {
      const timeout = new AbortController();
      const hung = delay(limitMs, 'HUNG' as const, { signal: timeout.signal }).catch(() => 'HUNG' as const);
      const end = await Promise.race([ended, hung]);
      timeout.abort();
      if (end === 'HUNG') child.kill('SIGKILL');
      return end;
    },
  };
}

/** How a command ended that could have hung. */
export type BoundedResult = Omit<CommandResult, 'code'> & { readonly code: number | null | 'HUNG' };

async function toItsEnd(command: WatchedCommand, input: string, limitMs?: number): Promise<BoundedResult> {
  command.child.stdin.end(input);
  const code = await command.end(limitMs);
  return { code, stdout: command.stdout(), stderr: command.stderr() };
}

/** Runs a shell script to its end, with `artseal`'s runtime on its PATH, or kills it after `limitMs`. */
export function runShell(
  test: Pick<TestContext, 'after'>,
  script: string,
  env: Record<string, string> = {},
  limitMs?: number,
): Promise<BoundedResult> {
  return toItsEnd(watch(test, 'sh', ['-c', script], env), '', limitMs);
}

/** Runs `artseal` to its end, or kills it after `limitMs`. */
export function runBounded(
  test: Pick<TestContext, 'after'>,
  words: readonly string[],
  env: Record<string, string>,
  limitMs?: number,
): Promise<BoundedResult> {
  return toItsEnd(watch(test, ...artsealCommand(words), { ...anyAddresses, ...env }), '', limitMs);
}

/**
 * Starts `artseal serve` on free ports and waits for its ready line; by `launcher`, words of a command that becomes what
 * follows them, if there are any.
 */
export async function serveWatched(
  test: Pick<TestContext, 'after'>,
  env: Record<string, string>,
  launcher: readonly string[] = [],
): Promise<WatchedService> {
  const [program = '', ...words] = [...launcher, ...artsealCommand(['serve']).flat()];
  const command = watch(test, program, words, { ...anyAddresses, ...env });
  const { child } = command;
  const [, publicUrl = '', internalUrl = '', metricsUrl = ''] = await new Promise<string[]>(
    (resolve, reject) => {
      child.stdout.on('data', () => {
        const ready = readyLine.exec(command.stdout());
        if (ready !== null) resolve(ready);
      });
      child.once('close', () => reject(new Error(`serve ended before it was ready: ${command.stderr()}`)));
    },
  );
  return {
    ...command,
    publicUrl,
    internalUrl,
    metricsUrl,
    stop: (signal = 'SIGTERM', limitMs) => {
      child.kill(signal);
      return command.end(limitMs);
    },
  };
}

/** Asserts that a command failed with one line that says why, and without a stack trace, whatever line began its log. */
export function assertOneLine(result: BoundedResult, code: number, ...patterns: readonly RegExp[]): void {
  const { stdout } = result;
  const stderr = result.stderr.replace(/^\{.*"msg":"starting"\}\n/, '');
  assert.equal(result.code, code, `${stderr}${stdout}`);
  assert.match(stderr, /^artseal: [^\n]+\n$/);
  assert.doesNotMatch(stderr, /\bat \S+:\d+:\d+|node:internal|undefined|\[object /);
  assert.doesNotMatch(stdout, /artseal ready/);
  for (const pattern of patterns) assert.match(stderr, pattern);
}
