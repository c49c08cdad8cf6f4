import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { artsealWith } from '../support/artseal.ts';
import { artsealCommand, projectFolder } from '../support/artseal-command.ts';
import { skipUnlessMailServer, startSmtpServer } from '../support/smtp-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import {
  commandEnvironment,
  serveWatched,
  startProgram,
  type WatchedService,
} from '../support/watched-command.ts';

const skip = skipUnlessMailServer();
const kills = 20;

/** Where the server is killed: at a step of the mail server, or after a line of `access notify`. Which one of them, differs too. */
const points = ['CONNECT', 'RCPT', 'DATA', 'STORED', 'LINE'] as const;
type Point = (typeof points)[number];

const isBouncing = (email: string) => email.startsWith('unknown-');

/** Runs `artseal access notify --json` to its end. Returns its exit code, and the lines that it printed. */
async function notify(t: TestContext, env: Record<string, string>, onLine: () => Promise<void> | undefined) {
  const [program, words] = artsealCommand(['access', 'notify', '--json']);
  const command = startProgram(t, program, words, { env: commandEnvironment(env), cwd: projectFolder });
  createInterface(command.child.stdout).on('line', () => void onLine());
  const code = await command.end();
  const lines = command.stdout().split('\n').slice(0, -1);
  return { code, errors: command.stderr(), lines: lines.map((line) => JSON.parse(line)) };
}

test(`a server that is killed ${kills} times sends no address two notices, in the order of arrival`, {
  skip,
}, async (t) => {
  let server: WatchedService | undefined;
  let next: { readonly point: Point; left: number } | undefined;

  /** Kills the server if this is where it is killed next. */
  async function reach(point: Point): Promise<void> {
    if (next?.point !== point) return;
    next.left -= 1;
    if (next.left > 0) return;
    next = undefined;
    await server?.stop('SIGKILL');
  }

  const mailServer = await startSmtpServer(t, { atStep: reach });
  const env = {
    ARTSEAL_DATA_DIR: temporaryFolder(t),
    ARTSEAL_SMTP_URL: mailServer.url,
    ARTSEAL_MAIL_FROM: 'registry@registry.example',
    ARTSEAL_PUBLIC_URL: 'https://registry.example',
  };
  const artseal = artsealWith(env);
  server = await serveWatched(t, env);
  const emails = Array.from(
    { length: 4 * kills },
    (_, nth) => `${nth % 9 === 4 ? 'unknown-' : 'person-'}${nth}@example.com`,
  );
  for (const email of emails)
    await artseal.lines(`access add --email ${email} --name Qi --intended-use paintings --tier TRIAL`);

  const lines: { registrationId: string; notice: string; due: number }[] = [];
  for (let nth = 0; nth < kills; nth += 1) {
    const point = points[nth % points.length] as Point;
    next = { point, left: point === 'CONNECT' ? 1 : 1 + (nth % 3) };
    const run = await notify(t, env, () => reach('LINE'));
    assert.equal(next, undefined, `kill ${nth} at ${point}: the run ended before`);
    assert.equal(run.code, 1, run.errors);
    lines.push(...run.lines);
    server = await serveWatched(t, env);
  }
  const last = await notify(t, env, () => undefined);
  assert.equal(last.code, 0, last.errors);
  lines.push(...last.lines);

  const listed = await artseal.list('access list');
  assert.deepEqual(
    listed.map(({ email }) => email),
    emails,
  );
  const arrived = mailServer.mails().map(({ to }) => to);
  assert.deepEqual(arrived, [...new Set(arrived)], 'an address has two mails');
  const inOrder = (one: string, other: string) => emails.indexOf(one) - emails.indexOf(other);
  assert.deepEqual(arrived, arrived.toSorted(inOrder), 'the order of arrival is broken');
  const withState = (state: string) =>
    listed.filter(({ notice }) => notice === state).map(({ email }) => email as string);
  assert.equal(last.lines.at(-1)?.due, 0);
  assert.deepEqual(withState('DUE').concat(withState('SENDING')), []);
  const unknown = withState('UNKNOWN');
  assert.deepEqual(
    withState('SENT').filter((email) => !arrived.includes(email)),
    [],
  );
  assert.deepEqual(
    emails.filter((email) => !arrived.includes(email) && !unknown.includes(email)),
    withState('BOUNCED'),
    'an address without a mail is not UNKNOWN',
  );
  assert.ok(withState('BOUNCED').every(isBouncing));
  // The text of a mail that the server could not see the end of may have arrived, or not.
  assert.ok(
    unknown.some((email) => arrived.includes(email)),
    'no kill after a mail was stored',
  );
  assert.ok(
    unknown.some((email) => !arrived.includes(email)),
    'no kill before a mail was stored',
  );
  assert.deepEqual(
    (await artseal.list('access list --notice UNKNOWN')).map(({ email }) => email),
    unknown,
  );
  // Each registration has one line in all runs, except where its run ended before that.
  const shown = lines.map(({ registrationId }) => registrationId);
  assert.deepEqual(shown, [...new Set(shown)]);
  const unknownIds = listed.filter(({ notice }) => notice === 'UNKNOWN').map((one) => one.registrationId);
  assert.deepEqual(
    unknownIds.filter((id) => !shown.includes(id)),
    [],
  );
  const entries = (await artseal.list('audit-log')).filter(({ action }) => action === 'access notify');
  assert.ok(entries.length >= kills - kills / points.length, `${entries.length} entries`);
  assert.equal(await server.stop(), 0);
});
