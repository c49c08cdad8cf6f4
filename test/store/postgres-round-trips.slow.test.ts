import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import pg from 'pg';
import { openPostgresStore } from '../../src/store/postgres/store.ts';
import { perform, type Store } from '../../src/store/store.ts';
import { createDatabase, skipUnlessPostgres } from '../support/postgres.ts';
import { addPlatform, instanceFacts, sandbox, toFile } from './promises/fixtures.ts';

const skip = skipUnlessPostgres();
const by = { callerId: 1, caller: 'gallery' };

/** The statements of a transaction, and how often the process waited for the database in it. */
interface Sent {
  readonly statements: string[];
  waits: number;
}

/** Records the transactions of all connections of this process that file something. */
function recordFilings(t: TestContext): Sent[] {
  const filing: Sent[] = [];
  const open = new WeakMap<object, Sent & { underWay: number }>();
  const { query } = pg.Client.prototype;
  t.after(() => Object.assign(pg.Client.prototype, { query }));
  function record(this: pg.Client, ...args: [string | { readonly name?: string; readonly text: string }]) {
    const [sent] = args;
    const text = typeof sent === 'string' ? sent : (sent.name ?? sent.text);
    const current = open.get(this) ?? { statements: [], waits: 0, underWay: 0 };
    open.set(this, text === 'BEGIN' ? { statements: [], waits: 0, underWay: 0 } : current);
    const transaction = open.get(this) ?? current;
    if (transaction.underWay === 0) transaction.waits += 1;
    transaction.underWay += 1;
    transaction.statements.push(text);
    if (text === 'insert filing') filing.push(transaction);
    const result = Reflect.apply(query, this, args) as unknown as Promise<unknown>;
    const ended = () => {
      transaction.underWay -= 1;
    };
    result.then(ended, ended);
    return result;
  }
  Object.assign(pg.Client.prototype, { query: record });
  return filing;
}

test('a batch of filings waits for the database twice, also after filings of another instance', {
  skip,
}, async (t) => {
  const url = await createDatabase(t);
  const open = async (host: string) => {
    const store = await openPostgresStore({ place: { url }, ...sandbox });
    t.after(() => store.close());
    await perform(store, { kind: 'JoinInstances', facts: instanceFacts(host) });
    return store;
  };
  const both = [await open('a'), await open('b')] as const;
  await addPlatform(both[0], 'gallery');
  let nonces = 0;
  const file = (store: Store) =>
    Promise.all(
      Array.from({ length: 40 }, () => {
        nonces += 1;
        const nonce = { keyId: 1, nonce: `${nonces}` };
        const quota = { callerId: 1, month: '2026-11', limit: 1_000, take: true };
        return store.execute({ admission: { nowS: 1_800_000_000, nonce, quota }, effect: toFile(by) });
      }),
    );
  // Each reads once what it then keeps in memory.
  for (const store of both) await file(store);
  const filed = recordFilings(t);
  for (let turn = 0; turn < 6; turn += 1) await file(both[turn % 2] ?? both[0]);
  assert.ok(filed.length >= 6);
  for (const { statements, waits } of filed) assert.equal(waits, 2, statements.join(', '));
});
