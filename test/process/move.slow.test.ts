import assert from 'node:assert/strict';
import { existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type pg from 'pg';
import { artsealCommand, projectFolder } from '../support/artseal-command.ts';
import { eventually } from '../support/eventually.ts';
import { type IssuedPlatform, issueInto } from '../support/issued.ts';
import { connectTo, createDatabase, skipUnlessPostgres } from '../support/postgres.ts';
import { artwork } from '../support/samples.ts';
import { newNonce, type SignedRequest, send } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import {
  commandEnvironment,
  runCommand,
  serveWatched,
  startProgram,
  type WatchedService,
} from '../support/watched-command.ts';

const options = { skip: skipUnlessPostgres(), timeout: 300_000 };

type Env = Record<string, string>;

/** A deployment that can be served from its folder, from a database, or from neither. */
async function deployment(t: TestContext) {
  const dataDir = temporaryFolder(t);
  const url = await createDatabase(t);
  const { platform } = await issueInto(dataDir, 1);
  const inFolder: Env = { ARTSEAL_DATA_DIR: dataDir };
  const onPostgres: Env = { ...inFolder, ARTSEAL_DATABASE_URL: url };
  return { dataDir, url, platform, inFolder, onPostgres, file: join(dataDir, 'artseal.db') };
}

async function run(words: readonly string[], env: Env): Promise<string> {
  const { code, stdout, stderr } = await runCommand(words, env);
  assert.equal(code, 0, stderr);
  return stdout;
}

const filing = { target: '/api/v1/filing', body: JSON.stringify(artwork) };

/** Files, and returns the request, its response, and the events and the tree after it. */
async function fileOnce({ publicUrl }: WatchedService, platform: IssuedPlatform) {
  const request: SignedRequest = {
    ...filing,
    nonce: newNonce(),
    timestamp: String(Math.floor(Date.now() / 1_000)),
    headers: { 'Idempotency-Key': newNonce() },
  };
  const { status, json } = await send(publicUrl, platform, request);
  assert.equal(status, 200);
  const events = await send(publicUrl, platform, { target: '/api/v1/events' });
  return { request, json, events: events.json.events };
}

test('a moved registry continues its numbers and events, there and back', options, async (t) => {
  const { dataDir, url, platform, inFolder, onPostgres } = await deployment(t);
  let service = await serveWatched(t, inFolder);
  let before = await fileOnce(service, platform);
  for (const [words, env] of [
    [['move', '--to', url], onPostgres],
    [['move', '--to', dataDir], inFolder],
  ] as const) {
    const reads = (filingNo: string) =>
      Promise.all(
        [`/api/v1/filing/${filingNo}`, `/api/v1/provenance/${filingNo}`].map(async (target) => {
          const { status, json } = await send(service.publicUrl, platform, { target });
          return [status, json];
        }),
      );
    const read = await reads(before.json.filingNo);
    const refused = await runCommand(words, onPostgres);
    assert.equal(refused.code, 1, 'the server uses the folder');
    assert.equal(await service.stop(), 0);
    await run(words, onPostgres);

    service = await serveWatched(t, env);
    assert.deepEqual(await reads(before.json.filingNo), read);
    const again = await send(service.publicUrl, platform, before.request);
    assert.deepEqual([again.status, again.json.code], [401, 'NONCE_REUSED']);
    const replay = await send(service.publicUrl, platform, { ...before.request, nonce: newNonce() });
    assert.deepEqual([replay.status, replay.json], [200, before.json]);
    const after = await fileOnce(service, platform);
    const sequenceOf = (filingNo: string) => Number(filingNo.slice(-6));
    assert.equal(sequenceOf(after.json.filingNo), sequenceOf(before.json.filingNo) + 1);
    assert.deepEqual(after.events.slice(0, before.events.length), before.events);
    assert.equal(after.events.length, before.events.length + 1);
    before = after;
  }
  assert.equal(await service.stop(), 0);
  assert.match(await run(['check'], inFolder), /^ok +evidence log/m);
});

/** Makes the statements of a move that stamp the database wait for a lock. */
const holdStamps = `
  CREATE FUNCTION hold() RETURNS event_trigger LANGUAGE plpgsql AS $$
  BEGIN
    PERFORM pg_advisory_lock(42);
    PERFORM pg_advisory_unlock(42);
  END
  $$;
  CREATE EVENT TRIGGER hold ON ddl_command_start WHEN TAG IN ('COMMENT') EXECUTE FUNCTION hold()`;

test(
  'after a kill -9 at any step one of the two is served, and the command ends the move',
  options,
  async (t) => {
    const { dataDir, url, platform, inFolder, onPostgres, file } = await deployment(t);
    const watcher = await connectTo(t, url);
    await watcher.query(holdStamps);

    const isServed = async (env: Env) =>
      (await runCommand(['key', 'list'], env)).stdout.includes(platform.keyId);
    const served = async () => ({ folder: await isServed(inFolder), postgres: await isServed(onPostgres) });
    /** The sessions that wait for the lock. */
    const waiting = async (): Promise<number[]> =>
      (
        await watcher.query<{ pid: number }>(
          "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = 42 AND NOT granted",
        )
      ).rows.map(({ pid }) => pid);
    const untilWaiting = (sessions: number) =>
      eventually(`${sessions} sessions wait`, 60_000, async () => (await waiting()).length === sessions);

    /** Kills the command, and its session, when it stamps the database for the nth time. */
    async function killAtStamp(nth: 1 | 2, words: readonly string[]): Promise<void> {
      let holder = await hold(t, url);
      const [program, all] = artsealCommand(words);
      const command = startProgram(t, program, all, {
        env: commandEnvironment(onPostgres),
        cwd: projectFolder,
      });
      await untilWaiting(1);
      if (nth === 2) {
        const next = hold(t, url);
        await untilWaiting(2);
        await holder.end();
        holder = await next;
        await untilWaiting(1);
      }
      command.child.kill('SIGKILL');
      await command.end();
      for (const pid of await waiting()) await watcher.query('SELECT pg_terminate_backend($1, 5000)', [pid]);
      await holder.end();
    }

    const [toPostgres, toFolder] = [
      ['move', '--to', url],
      ['move', '--to', dataDir],
    ] as const;
    const [onlyFolder, onlyPostgres] = [
      { folder: true, postgres: false },
      { folder: false, postgres: true },
    ];

    await killAtStamp(1, toPostgres);
    assert.deepEqual(await served(), onlyFolder);
    await killAtStamp(2, toPostgres);
    assert.ok(!existsSync(file));
    // As if it had been killed before it renamed the file.
    renameSync(`${file}.moved`, file);
    assert.deepEqual(await served(), onlyFolder);
    await killAtStamp(1, toPostgres);
    assert.deepEqual(await served(), onlyPostgres);
    await run(toPostgres, inFolder);

    await killAtStamp(1, toFolder);
    assert.deepEqual(await served(), onlyPostgres);
    await killAtStamp(2, toFolder);
    renameSync(file, `${file}.partial`);
    assert.deepEqual(await served(), onlyPostgres);
    await killAtStamp(2, toFolder);
    assert.deepEqual(await served(), onlyFolder);
    await run(toFolder, onPostgres);
    const unowned = { ...onPostgres, ARTSEAL_DATA_DIR: temporaryFolder(t) };
    assert.match((await runCommand(['key', 'list'], unowned)).stderr, /the database was moved to/);
  },
);

/** A session that holds the lock, as soon as it gets it. */
async function hold(t: TestContext, url: string): Promise<pg.Client> {
  const client = await connectTo(t, url);
  await client.query('SELECT pg_advisory_lock(42)');
  return client;
}
