import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';

/** A database with the tables of Artseal that is reached without its store. */
export interface RawDatabase {
  run(statement: string): Promise<unknown>;
  rows(table: string): Promise<readonly unknown[]>;
}

/** How an engine differs. */
export interface AppendOnlyEngine {
  readonly name: string;
  readonly skip: string | false;
  /** Opens a new database. */
  open(t: TestContext): Promise<RawDatabase>;
  /** Bytes in SQL. */
  bytes(hex: string): string;
  /** Statements that begin the kinds of sessions in which nothing may be changed. */
  readonly sessions: readonly string[];
  /** The codes with which it rejects what a trigger does, and a second row in place of another. */
  readonly code: string;
  readonly codeOfReplaced: string;
  /** Statements besides DELETE that would remove the rows of a table. */
  removals(table: string): readonly string[];
  /** Further statements, by the messages that reject them. */
  readonly forbidden: Readonly<Record<string, readonly string[]>>;
}

type Row = Readonly<Record<string, string | number | null | Buffer>>;

const salt = Buffer.alloc(32, 1);
const filing = 'AS-2026-000001';

/** A row of each table, by the name of the table, recorded at a time. Each refers to those before it. */
const rowsAt = (atS: number): Readonly<Record<string, Row>> => ({
  caller: { id: 1, name: 'gallery' },
  filing: {
    ...{ id: 1, filing_no: filing, caller_id: 1, timestamp: 'then', filed_at_s: atS, leaf_index: 0 },
    ...{ author: 'Ann', era: '1990s', size: 'A4', material: 'oil', condition: 'good', price: 1, hash: 'ab' },
    ...{ previous_id: null, salt },
  },
  provenance_record: {
    ...{ filing_no: filing, position: 2, event: 'SOLD', at: '2026-01-01' },
    ...{ recorded_at_s: atS, leaf_index: 1, salt },
  },
  escrow: {
    ...{ id: 1, escrow_id: 'ES-2026-000001', filing_no: filing, caller_id: 1, type: 'FULL', amount: 1 },
    ...{ buyer_id: 'bea', seller_id: 'sam', state: 'RELEASED', timestamp: 'then' },
  },
  escrow_change: { order_id: 1, position: 1, state: 'UNPAID', at: 'then', changed_at_s: atS },
  log_leaf: { id: 1, data: '{}\n{}', hashes: Buffer.alloc(96), first: 0 },
  log_event: { sequence: 1, kind: 'KEY_ADDED', detail: '{}', time_s: atS, leaf_index: 1 },
  log_origin: { id: 1, origin: 'artseal.invalid/log', first_size: 0 },
  restoration: { id: 1, taken_at_s: 1, restored_at_s: 2, served_at_s: 3 },
  number_gap: { kind: 'FILING', year: 2026, after: 1, through: 9, restoration_id: 1 },
  audit_entry: { id: 1, at_s: 1, actor: 'local:ann', action: 'key create', subject: 'gallery' },
  party: { id: 1, caller_id: 1, role: 'BUYER', party_id: 'ann', provider_ids: '{}', added_at_s: 1 },
});

const never = ' never changes';
const years = ' is kept for five years';

/** Tables whose rows are kept: the key of each, a change, and the messages that reject a change and a removal. */
const kept = (
  [
    ['filing', 'id', "author = 'Forger'", `a filing${never}`, `a filing${years}`],
    [
      ...(['provenance_record', 'filing_no, position', "at = '1999-01-01'"] as const),
      ...([`a provenance record${never}`, `a provenance record${years}`] as const),
    ],
    [
      ...(['escrow_change', 'order_id, position', "state = 'RELEASED'"] as const),
      ...([`a state of an order${never}`, `the history of an order${years}`] as const),
    ],
    ['log_leaf', 'id', "data = '[]'", `a leaf of the log${never}`, 'a leaf of the log is kept'],
    ['log_event', 'sequence', "kind = 'RECORDS_ERASED'", `a log event${never}`, 'a log event is kept'],
    ['log_origin', 'id', 'first_size = 2', `an origin of the log${never}`, 'an origin of the log is kept'],
    ['restoration', 'id', 'served_at_s = NULL', `a restoration${never}`, 'a restoration is kept'],
    [
      ...(['number_gap', 'kind, year, after', 'through = 2'] as const),
      ...([`a gap in the numbers${never}`, 'a gap in the numbers is kept'] as const),
    ],
    ['audit_entry', 'id', "actor = 'forged'", `an audit entry${never}`, 'an audit entry is kept'],
    ['party', 'id', "party_id = 'bob'", `a party${never}, it is removed`, 'a party is kept'],
  ] as const
).map(([table, key, change, ofChange, ofRemoval]) => ({ table, key, change, ofChange, ofRemoval }));

/** The tables whose rows are kept. */
export const keptTables: readonly string[] = kept.map(({ table }) => table);

/** What erases a filing, and a record. */
const texts = ['author', 'era', 'size', 'material', 'condition', 'hash'];
const erasure = {
  ...Object.fromEntries(texts.map((name) => [name, "''"])),
  ...{ price: '0', salt: 'NULL', erased_at_s: '1' },
};
const recordErasure = { salt: 'NULL' };

const assigned = (values: Readonly<Record<string, string>>) =>
  Object.entries(values)
    .map((entry) => entry.join(' = '))
    .join();
const erase = `UPDATE filing SET ${assigned(erasure)}`;
const eraseRecord = `UPDATE provenance_record SET ${assigned(recordErasure)}`;

/** Inserts leaves. */
export const leaf = (values: string) => `INSERT INTO log_leaf (id, data, hashes, first) VALUES ${values}`;

/** Binds the database to a sandbox, unless it is bound. */
const bind = (secret: string) =>
  `INSERT INTO deployment (id, environment, secret, currency) VALUES (1, 'sandbox', ${secret}, 'CNY') ON CONFLICT DO NOTHING`;

/** Further statements, by the messages that reject them. */
const forbiddenIn = ({ bytes }: AppendOnlyEngine): Readonly<Record<string, readonly string[]>> => ({
  'a filing never changes': [
    ...['author = author', 'filed_at_s = 0', 'leaf_index = leaf_index + 1', `salt = ${bytes('02')}`],
    ...['salt = NULL', 'previous_id = 1', assigned(erasure)],
  ].map((change) => `UPDATE filing SET ${change}`),
  'a provenance record never changes': [
    ...['position = 9', 'leaf_index = leaf_index + 1', assigned(recordErasure)],
  ].map((change) => `UPDATE provenance_record SET ${change}`),
  'only the clock of a sandbox is advanced, and it never goes back': [
    'UPDATE deployment SET clock_ahead_s = clock_ahead_s - 1',
    "UPDATE deployment SET environment = 'production'; UPDATE deployment SET clock_ahead_s = 1",
  ].map((change) => `${bind(bytes('00'))}; ${change}`),
  'a party never changes, it is removed': [`UPDATE party SET provider_ids = '{"stripe":"cus_1"}'`],
  'a leaf of the log follows the last one': [
    ...["(0, '{}', none, 0)", "(0, '{}', none, 2)", "(99, '{}', none, 1)", "(99, '{}', none, 99)"],
    ...["(2, '{}', none, 3)", "(2, '{}', none, 2), (4, '{}', none, 4)"],
  ].map((values) => leaf(values.replaceAll('none', bytes('')))),
});

/** Seconds since the epoch: five years ago, and so many days later. */
function fiveYearsAgo(days: number): number {
  const at = new Date();
  at.setUTCFullYear(at.getUTCFullYear() - 5, at.getUTCMonth(), at.getUTCDate() + days);
  return Math.floor(at.getTime() / 1_000);
}

const nowS = () => Math.floor(Date.now() / 1_000);

const retained = kept.filter(({ ofRemoval }) => ofRemoval.endsWith('five years'));
/** In an order in which no row refers to one that is deleted. */
const deleted = ['escrow_change', 'escrow', 'provenance_record', 'filing'];

/** Tests that a database rejects changes of what was recorded, from every role. */
export function appendOnlySuite(engine: AppendOnlyEngine): void {
  const { skip, bytes, sessions, code, codeOfReplaced } = engine;

  function insertion(table: string, row: Row): string {
    const values = Object.values(row).map((value) => {
      if (Buffer.isBuffer(value)) return bytes(value.toString('hex'));
      return typeof value === 'string' ? `'${value}'` : String(value);
    });
    return `INSERT INTO ${table} (${Object.keys(row).join()}) VALUES (${values.join()})`;
  }

  /** A database with rows that were recorded at a time. */
  async function recorded(t: TestContext, atS: number): Promise<RawDatabase> {
    const raw = await engine.open(t);
    for (const [table, row] of Object.entries(rowsAt(atS))) await raw.run(insertion(table, row));
    return raw;
  }

  async function snapshot({ rows }: RawDatabase): Promise<unknown> {
    const all: unknown[] = [];
    for (const table of keptTables) all.push(await rows(table));
    return all;
  }

  /** Asserts that the database rejects each statement with a message. */
  async function rejectsEach(raw: RawDatabase, message: string, ...statements: readonly string[]) {
    const before = await snapshot(raw);
    for (const statement of statements) {
      await assert.rejects(raw.run(statement), { message, code }, statement);
      assert.deepEqual(await snapshot(raw), before, statement);
    }
  }

  function suiteTest(name: string, run: (t: TestContext) => Promise<void>): void {
    test(`${engine.name}: ${name}`, { skip }, run);
  }

  suiteTest('the database rejects changes of what was recorded, from any session', async (t) => {
    const raw = await recorded(t, nowS());
    for (const session of sessions) {
      await raw.run(session);
      for (const { table, change, ofChange, ofRemoval } of kept) {
        await rejectsEach(raw, ofChange, `UPDATE ${table} SET ${change}`);
        await rejectsEach(raw, ofRemoval, `DELETE FROM ${table}`, ...engine.removals(table));
      }
      for (const forbidden of [forbiddenIn(engine), engine.forbidden])
        for (const [message, statements] of Object.entries(forbidden))
          await rejectsEach(raw, message, ...statements);
    }
  });

  suiteTest('the database rejects a second row in place of one that was recorded', async (t) => {
    const raw = await recorded(t, nowS());
    const before = await snapshot(raw);
    // A leaf has to follow the last one, which is checked first.
    for (const { table, key, change, ofChange } of kept.filter((each) => each.table !== 'log_leaf')) {
      const again = insertion(table, rowsAt(nowS())[table] ?? {});
      await assert.rejects(raw.run(again), { code: codeOfReplaced }, table);
      // On SQLite a trigger rejects the second row before its change.
      const rejection = codeOfReplaced === code ? { code } : { message: ofChange, code };
      await assert.rejects(
        raw.run(`${again} ON CONFLICT (${key}) DO UPDATE SET ${change}`),
        rejection,
        table,
      );
    }
    assert.deepEqual(await snapshot(raw), before);
  });

  suiteTest('records older than five years may be deleted, but not changed', async (t) => {
    const raw = await recorded(t, fiveYearsAgo(-2));
    for (const { table, change, ofChange } of kept)
      await rejectsEach(raw, ofChange, `UPDATE ${table} SET ${change}`);
    for (const table of deleted) await raw.run(`DELETE FROM ${table}`);
    for (const { table } of retained) assert.deepEqual(await raw.rows(table), [], table);
    await rejectsEach(raw, 'a leaf of the log is kept', 'DELETE FROM log_leaf');
  });

  suiteTest('records of almost five years may not be deleted', async (t) => {
    const raw = await recorded(t, fiveYearsAgo(2));
    for (const { table, ofRemoval } of retained) await rejectsEach(raw, ofRemoval, `DELETE FROM ${table}`);
  });

  /** Erasures of a row that do something else to one of its columns. */
  const otherErasures = (table: string, values: Readonly<Record<string, string>>): string[] =>
    Object.keys({ ...rowsAt(1)[table], ...values }).map((name) => {
      const other = name === 'erased_at_s' ? 'NULL' : name === 'salt' ? bytes('09') : "'9'";
      return `UPDATE ${table} SET ${assigned({ ...values, [name]: other })}`;
    });

  suiteTest('a filing older than five years may be erased as a whole, once', async (t) => {
    const raw = await recorded(t, fiveYearsAgo(-2));
    await rejectsEach(raw, 'a filing never changes', ...otherErasures('filing', erasure));
    const others = otherErasures('provenance_record', recordErasure);
    await rejectsEach(raw, 'a provenance record never changes', ...others);
    await raw.run(erase);
    await raw.run(eraseRecord);
    const again = [erase, "UPDATE filing SET author = 'Forger', erased_at_s = NULL"];
    await rejectsEach(raw, 'a filing never changes', ...again);
    const salted = [`UPDATE provenance_record SET salt = ${bytes('01')}`, eraseRecord];
    await rejectsEach(raw, 'a provenance record never changes', ...salted);
  });

  suiteTest('a party is removed once, and a restoration served once', async (t) => {
    const raw = await recorded(t, nowS());
    await raw.run('INSERT INTO restoration (id, taken_at_s, restored_at_s) VALUES (2, 1, 2)');
    await raw.run('UPDATE restoration SET served_at_s = 3 WHERE id = 2');
    await rejectsEach(raw, 'a restoration never changes', 'UPDATE restoration SET served_at_s = 4');
    await raw.run('UPDATE party SET removed_at_s = 2');
    const again = ['3', 'NULL'].map((atS) => `UPDATE party SET removed_at_s = ${atS}`);
    await rejectsEach(raw, 'a party never changes, it is removed', ...again);
  });
}
