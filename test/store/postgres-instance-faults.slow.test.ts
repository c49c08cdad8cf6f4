import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import pg from 'pg';
import { takeFence } from '../../src/store/postgres/transactions.ts';
import { perform, type Store } from '../../src/store/store.ts';
import { eventually } from '../support/eventually.ts';
import { runSql, skipUnlessPostgres, startCluster } from '../support/postgres.ts';
import { cutConnection, openDatabase } from './postgres-stores.ts';
import { addPlatform, toFile } from './promises/fixtures.ts';

const skip = skipUnlessPostgres();
const by = { callerId: 1, caller: 'gallery' };
/** Long enough for a machine that does much else. */
const limitMs = 60_000;

/** A database on a cluster of its own, which keeps what it answers. */
async function openOnOwn(t: TestContext) {
  const cluster = await startCluster(t, { fsync: true });
  return { cluster, ...(await openDatabase(t, cluster)) };
}

test('a filing is not answered before the standby has it, although its session has ended', {
  skip,
}, async (t) => {
  const { url, open } = await openOnOwn(t);
  const store = await open();
  const waiting = async () =>
    (await runSql<{ pid: number }>(url, "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"))[0]
      ?.pid;
  await runSql(url, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'", 'SELECT pg_reload_conf()');
  let answers = 0;
  const count = () => {
    answers += 1;
  };
  const filings: Promise<void>[] = [];
  // A session reads its settings again when it is idle.
  const first = await eventually('a commit that waits', limitMs, async () => {
    const filing = perform(store, toFile(by));
    filings.push(filing.then(count));
    return waiting();
  });
  const before = answers;
  await runSql(url, `SELECT pg_terminate_backend(${first}, 5000)`);
  await eventually('another one waits', limitMs, async () => {
    const next = await waiting();
    return next !== undefined && next !== first;
  });
  assert.equal(answers, before);
  await runSql(url, 'ALTER SYSTEM RESET synchronous_standby_names', 'SELECT pg_reload_conf()');
  await Promise.all(filings);
});

/** Sends the half of what a process sends at a time, in a session that has the fence, and then nothing. */
async function stopWithFence(t: TestContext, folder: string, database: string) {
  const socket = connect(join(folder, '.s.PGSQL.5432'));
  t.after(() => socket.destroy());
  socket.on('error', () => {});
  const message = (type: string, text: string) => {
    const head = Buffer.alloc(4);
    head.writeInt32BE(text.length + 4);
    return Buffer.concat([Buffer.from(type), head, Buffer.from(text, 'latin1')]);
  };
  const words = ['user', 'postgres', 'database', database, 'application_name', 'artseal', ''];
  socket.write(message('', `\0\x03\0\0${words.join('\0')}\0`));
  await once(socket, 'data');
  const ended = once(socket, 'close');
  socket.write(message('Q', 'SET idle_in_transaction_session_timeout = 500\0'));
  socket.write(message('Q', `BEGIN; ${takeFence.text}\0`));
  socket.write(message('P', '\0SELECT 1\0\0\0'));
  socket.resume();
  return { ended };
}

test('a session that has the fence and half a query is ended, and not the one of the leader that waits for it', {
  skip,
}, async (t) => {
  const { cluster, url, openAs } = await openOnOwn(t);
  const leader = await openAs('leader');
  await openAs('other');
  assert.equal(leader.instances?.isLeading(), true);
  const { ended } = await stopWithFence(t, cluster.folder, /\/(\w+)\?/.exec(url)?.[1] ?? '');
  await eventually('the fence is taken', limitMs, async () => {
    const fence = "hashtextextended('artseal fence', 0)";
    const held = `SELECT FROM pg_locks WHERE granted AND classid::bigint << 32 | objid::bigint = ${fence}`;
    return (await runSql(url, held)).length > 0;
  });
  await perform(leader, toFile(by));
  await ended;
});

/** Replaces the answer to the next query of a kind. */
function intercept(
  t: TestContext,
  isIt: (query: unknown) => boolean,
  change: (client: pg.Client) => unknown,
): void {
  const { query } = pg.Client.prototype;
  let isDone = false;
  t.after(() => {
    pg.Client.prototype.query = query;
  });
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
    const answer = Reflect.apply(query, this, args);
    if (isDone || !isIt(args[0])) return answer;
    isDone = true;
    return (async () => {
      const result = await answer;
      await change(this);
      return result;
    })();
  } as typeof query;
}

test('a filing is answered that was committed just before its session ended, while credentials are new', {
  skip,
}, async (t) => {
  const { open } = await openOnOwn(t);
  const [one, other] = [await open(), await open()];
  const { apiKey } = await addPlatform(other, 'second');
  const isCommit = (query: unknown) => query === 'COMMIT';
  intercept(t, isCommit, async (client) => {
    const ended = new Promise((resolve) => client.once('end', resolve));
    cutConnection(client);
    await ended;
  });
  await perform(one, toFile(by));
  await eventually('the new key', limitMs, async () => {
    await one.execute({}).catch(() => {});
    return one.findKey(apiKey) !== undefined;
  });
});

/** Files with many calls at a time until all of some rounds have an answer. */
const fileInRounds = (store: Store) =>
  Promise.all(
    Array.from({ length: 64 }, async () => {
      for (let nth = 0; nth < 10; nth += 1) await perform(store, toFile(by));
    }),
  );

test('filings at a process that stood still with the fence are stored', { skip }, async (t) => {
  const { openAs } = await openOnOwn(t);
  // Only beside others its session is ended so soon.
  await openAs('other');
  const store = await openAs('own');
  const standStill = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
  intercept(t, (query) => (query as { name?: string }).name === takeFence.name, standStill);
  await fileInRounds(store);
});
