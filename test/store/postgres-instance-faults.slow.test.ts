import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import pg from 'pg';
import { openPostgresStore } from '../../src/store/postgres/store.ts';
import { perform } from '../../src/store/store.ts';
import { eventually } from '../support/eventually.ts';
import { createDatabase, skipUnlessPostgres, startCluster } from '../support/postgres.ts';
import { addPlatform, instanceFacts, sandbox, toFile } from './promises/fixtures.ts';

const skip = skipUnlessPostgres();
const by = { callerId: 1, caller: 'gallery' };
/** Long enough for a machine that does much else. */
const limitMs = 60_000;

/** A database with a platform on a cluster of its own, and functions that open stores on it. */
async function openDatabase(t: TestContext) {
  const cluster = await startCluster(t, { fsync: true });
  const url = await createDatabase(t, { cluster });
  const open = async () => {
    const store = await openPostgresStore({ place: { url }, ...sandbox });
    t.after(() => store.close());
    return store;
  };
  const openAs = async (host: string) => {
    const store = await open();
    await perform(store, { kind: 'JoinInstances', facts: instanceFacts(host) });
    return store;
  };
  const one = await open();
  await addPlatform(one, 'gallery');
  await one.close();
  return { cluster, url, open, openAs };
}

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
  const { open } = await openDatabase(t);
  const [one, other] = [await open(), await open()];
  const { apiKey } = await addPlatform(other, 'second');
  const isCommit = (query: unknown) => query === 'COMMIT';
  intercept(t, isCommit, async (client) => {
    const ended = new Promise((resolve) => client.once('end', resolve));
    (
      client as unknown as { connection: { stream: NodeJS.WritableStream & { destroy(): void } } }
    ).connection.stream.destroy();
    await ended;
  });
  await perform(one, toFile(by));
  await eventually('the new key', limitMs, async () => {
    await one.execute({}).catch(() => {});
    return one.findKey(apiKey) !== undefined;
  });
});
