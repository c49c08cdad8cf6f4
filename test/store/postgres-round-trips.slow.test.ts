import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import pg from 'pg';
import { rowsPerQuery, selectRows } from '../../src/store/postgres/leaf-rows.ts';
import { takeFence } from '../../src/store/postgres/transactions.ts';
import type { Store } from '../../src/store/store.ts';
import { eventually } from '../support/eventually.ts';
import { runSql, skipUnlessPostgres } from '../support/postgres.ts';
import { openDatabase } from './postgres-stores.ts';
import { toFile } from './promises/fixtures.ts';

const skip = skipUnlessPostgres();
const by = { callerId: 1, caller: 'gallery' };
/** Long enough for a machine that does much else. */
const limitMs = 60_000;

/** The statements of a transaction, and how often the process waited for the database in it. */
interface Sent {
  readonly statements: string[];
  waits: number;
}

/** Records the transactions of all connections of this process. */
function recordTransactions(t: TestContext): Sent[] {
  const recorded: Sent[] = [];
  const open = new WeakMap<object, Sent & { underWay: number }>();
  const { query } = pg.Client.prototype;
  t.after(() => Object.assign(pg.Client.prototype, { query }));
  function record(this: pg.Client, ...args: [string | { readonly name?: string; readonly text: string }]) {
    const [sent] = args;
    const text = typeof sent === 'string' ? sent : (sent.name ?? sent.text);
    let transaction = open.get(this);
    if (transaction === undefined || text === 'BEGIN') {
      transaction = { statements: [], waits: 0, underWay: 0 };
      open.set(this, transaction);
      recorded.push(transaction);
    }
    if (transaction.underWay === 0) transaction.waits += 1;
    transaction.underWay += 1;
    transaction.statements.push(text);
    const result = Reflect.apply(query, this, args) as unknown as Promise<unknown>;
    const ended = () => {
      transaction.underWay -= 1;
    };
    result.then(ended, ended);
    return result;
  }
  Object.assign(pg.Client.prototype, { query: record });
  return recorded;
}

const files = ({ statements }: Sent) => statements.includes('insert filing');

/** The functions of `openDatabase`, and one that files so many artworks at once. */
async function openToFile(t: TestContext) {
  let nonces = 0;
  const file = (store: Store, count: number) =>
    Promise.all(
      Array.from({ length: count }, () => {
        nonces += 1;
        const nonce = { keyId: 1, nonce: `${nonces}` };
        const quota = { callerId: 1, month: '2026-11', limit: 1_000, take: true };
        return store.execute({ admission: { nowS: 1_800_000_000, nonce, quota }, effect: toFile(by) });
      }),
    );
  return { ...(await openDatabase(t)), file };
}

/** Waits until all instances have seen the others. */
const knowEachOther = (stores: readonly Store[]) =>
  eventually('the others', limitMs, () =>
    stores.every(({ instances }) => instances?.others() === stores.length - 1),
  );

for (const [title, hosts, expected] of [
  ['a batch of filings waits for the database twice', ['a'], 2],
  ['beside another instance, it waits for the fence before, also after filings of the other', ['a', 'b'], 3],
] as const)
  test(title, { skip }, async (t) => {
    const { openAs, file } = await openToFile(t);
    const stores = [];
    for (const host of hosts) stores.push(await openAs(host));
    await knowEachOther(stores);
    // Each reads once what it then keeps in memory.
    for (const store of stores) await file(store, 40);
    const recorded = recordTransactions(t);
    for (let turn = 0; turn < 3; turn += 1) for (const store of stores) await file(store, 40);
    const filed = recorded.filter(files);
    assert.ok(filed.length >= 3 * stores.length);
    for (const { statements, waits } of filed) assert.equal(waits, expected, statements.join(', '));
  });

test('filings that came while a batch waited for the fence share its transaction', { skip }, async (t) => {
  const { url, openAs, file } = await openToFile(t);
  const stores = [await openAs('a'), await openAs('b')];
  await knowEachOther(stores);
  const [store] = stores as [Store, Store];
  await file(store, 1);
  const holder = new pg.Client(url);
  await holder.connect();
  t.after(() => holder.end());
  await holder.query('BEGIN');
  await holder.query(takeFence);
  const recorded = recordTransactions(t);
  const filings = [file(store, 1)];
  await eventually('the batch waits', limitMs, async () => {
    return (await runSql(url, 'SELECT FROM pg_locks WHERE NOT granted')).length > 0;
  });
  filings.push(file(store, 10));
  await turn();
  await holder.query('COMMIT');
  await Promise.all(filings);
  assert.equal(recorded.filter(files).length, 1);
});

test('a store that was away long reads the leaves of others before it has the fence', { skip }, async (t) => {
  const { open, openAs, file } = await openToFile(t);
  // It reads nothing by itself, since it has not joined.
  const away = await open();
  await file(away, 1);
  const here = await openAs('here');
  for (let nth = 0; nth < rowsPerQuery + 100; nth += 1) await file(here, 1);
  const recorded = recordTransactions(t);
  await file(away, 1);
  assert.equal(recorded.filter(files).length, 1);
  const reading = recorded.filter(({ statements }) => statements.includes(selectRows.name));
  assert.equal(reading.length, 1);
  assert.ok(!reading[0]?.statements.includes(takeFence.name));
});
