import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type pg from 'pg';
import { migrate } from '../../src/store/postgres/upgrade.ts';
import { migrations as sqliteMigrations } from '../../src/store/sqlite/upgrade.ts';
import { connectTo, createDatabase, skipUnlessPostgres } from '../support/postgres.ts';

const skip = skipUnlessPostgres();

type Row = Readonly<Record<string, unknown>>;

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
  event: { position: 1, caller_id: 1, sequence: 1, type: 'filing.created', at_ms: 1 },
});

/** Tables whose rows are kept: the key of each, and a change. */
const changes: Readonly<Record<string, readonly [key: string, change: string]>> = {
  filing: ['id', "author = 'Forger'"],
  provenance_record: ['filing_no, position', "at = '1999-01-01'"],
  escrow_change: ['order_id, position', "state = 'RELEASED'"],
  log_leaf: ['id', "data = '[]'"],
  log_event: ['sequence', "kind = 'RECORDS_ERASED'"],
  log_origin: ['id', 'first_size = 2'],
  restoration: ['id', 'served_at_s = NULL'],
  number_gap: ['kind, year, after', 'through = 2'],
  audit_entry: ['id', "actor = 'forged'"],
  party: ['id', "party_id = 'bob'"],
};

/** The messages that reject a change and a removal. */
const messages: Readonly<Record<string, readonly [ofChange: string, ofRemoval: string]>> = {
  filing: ['a filing never changes', 'a filing is kept for five years'],
  provenance_record: ['a provenance record never changes', 'a provenance record is kept for five years'],
  escrow_change: ['a state of an order never changes', 'the history of an order is kept for five years'],
  log_leaf: ['a leaf of the log never changes', 'a leaf of the log is kept'],
  log_event: ['a log event never changes', 'a log event is kept'],
  log_origin: ['an origin of the log never changes', 'an origin of the log is kept'],
  restoration: ['a restoration never changes', 'a restoration is kept'],
  number_gap: ['a gap in the numbers never changes', 'a gap in the numbers is kept'],
  audit_entry: ['an audit entry never changes', 'an audit entry is kept'],
  party: ['a party never changes, it is removed', 'a party is kept'],
};

const kept = Object.entries(changes).map(([table, [key, change]]) => {
  const [ofChange = '', ofRemoval = ''] = messages[table] ?? [];
  return { table, key, change, ofChange, ofRemoval };
});

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

const leaf = (values: string) => `INSERT INTO log_leaf (id, data, hashes, first) VALUES ${values}`;
const event = (...positions: readonly number[]) =>
  `INSERT INTO event (position, caller_id, sequence, type, at_ms) VALUES ${positions.map((at) => `(${at}, 1, ${at}, '', 1)`).join()}`;

/** Further statements, by the messages that reject them. */
const forbidden: Readonly<Record<string, readonly string[]>> = {
  'a filing never changes': [
    'UPDATE filing SET author = author',
    'UPDATE filing SET filed_at_s = 0',
    'UPDATE filing SET leaf_index = leaf_index + 1',
    "UPDATE filing SET salt = '\\x02'",
    'UPDATE filing SET salt = NULL',
    'UPDATE filing SET previous_id = 1',
    erase,
  ],
  'a provenance record never changes': [
    'UPDATE provenance_record SET position = 9',
    'UPDATE provenance_record SET leaf_index = leaf_index + 1',
    eraseRecord,
  ],
  'a party never changes, it is removed': [`UPDATE party SET provider_ids = '{"stripe":"cus_1"}'`],
  'an event never changes': ['UPDATE event SET at_ms = 2'],
  'a leaf of the log follows the last one': [
    leaf("(0, '{}', '', 0)"),
    leaf("(0, '{}', '', 2)"),
    leaf("(99, '{}', '', 1)"),
    leaf("(99, '{}', '', 99)"),
    leaf("(2, '{}', '', 3)"),
    leaf("(2, '{}', '', 2), (4, '{}', '', 4)"),
    // Another table of that name makes no difference.
    `CREATE TEMP TABLE log_leaf AS SELECT 98 AS id; ${leaf("(99, '{}', '', 99)").replace('log_leaf', 'public.log_leaf')}`,
  ],
  'an event follows those before it': [event(0), event(0, 2)],
  'a party is kept': ['TRUNCATE caller CASCADE'],
};

/** Seconds since the epoch: five years ago, and so many days later. */
function fiveYearsAgo(days: number): number {
  const at = new Date();
  at.setUTCFullYear(at.getUTCFullYear() - 5, at.getUTCMonth(), at.getUTCDate() + days);
  return Math.floor(at.getTime() / 1_000);
}

const nowS = () => Math.floor(Date.now() / 1_000);

const retained = kept.filter(({ ofRemoval }) => ofRemoval.endsWith('five years'));
/** In an order in which no row refers to one that is deleted. */
const deletions = [
  ...['DELETE FROM escrow_change', 'DELETE FROM escrow'],
  ...['DELETE FROM provenance_record', 'DELETE FROM filing'],
];

const insertion = (table: string, row: Row) => {
  const names = Object.keys(row);
  return {
    text: `INSERT INTO ${table} (${names.join()}) VALUES (${names.map((_, index) => `$${index + 1}`).join()})`,
    values: Object.values(row),
  };
};

/** A connection to a database with rows that were recorded at a time. */
async function recorded(t: TestContext, atS: number): Promise<pg.Client> {
  const client = await connectTo(t, await createDatabase(t));
  await migrate(client);
  for (const [table, row] of Object.entries(rowsAt(atS))) await client.query(insertion(table, row));
  return client;
}

async function snapshot(client: pg.Client): Promise<unknown> {
  const tables = [...Object.keys(changes), 'event'];
  const rows: unknown[][] = [];
  for (const table of tables) rows.push((await client.query(`SELECT * FROM public.${table}`)).rows);
  return rows;
}

/** Asserts that the database rejects each statement with a message. */
async function rejectsEach(client: pg.Client, message: string, ...statements: readonly string[]) {
  const before = await snapshot(client);
  for (const statement of statements) {
    await assert.rejects(client.query(statement), { message, code: '23000' }, statement);
    assert.deepEqual(await snapshot(client), before, statement);
  }
}

/** Triggers reject changes in sessions of clients and in those of a replication. */
const roles = ['origin', 'replica'];

test('the database rejects changes of what was recorded, from any session', { skip }, async (t) => {
  const client = await recorded(t, nowS());
  for (const role of roles) {
    await client.query(`SET session_replication_role = ${role}`);
    for (const { table, change, ofChange, ofRemoval } of kept) {
      await rejectsEach(client, ofChange, `UPDATE ${table} SET ${change}`);
      await rejectsEach(client, ofRemoval, `DELETE FROM ${table}`, `TRUNCATE ${table} CASCADE`);
    }
    for (const [message, statements] of Object.entries(forbidden))
      await rejectsEach(client, message, ...statements);
  }
});

test('the database rejects a second row in place of one that was recorded', { skip }, async (t) => {
  const client = await recorded(t, nowS());
  const before = await snapshot(client);
  // A leaf has to follow the last one, which is checked first.
  for (const { table, key, change, ofChange } of kept.filter((each) => each.table !== 'log_leaf')) {
    const { text, values } = insertion(table, rowsAt(nowS())[table] ?? {});
    await assert.rejects(client.query(text, values), { code: '23505' }, table);
    const upsert = `${text} ON CONFLICT (${key}) DO UPDATE SET ${change}`;
    await assert.rejects(client.query(upsert, values), { message: ofChange, code: '23000' }, table);
  }
  assert.deepEqual(await snapshot(client), before);
});

test('records older than five years may be deleted, but not changed', { skip }, async (t) => {
  const client = await recorded(t, fiveYearsAgo(-2));
  for (const { table, change, ofChange } of kept)
    await rejectsEach(client, ofChange, `UPDATE ${table} SET ${change}`);
  for (const deletion of deletions) await client.query(deletion);
  for (const { table } of retained)
    assert.equal((await client.query(`SELECT FROM ${table}`)).rowCount, 0, table);
  await rejectsEach(client, 'a leaf of the log is kept', 'DELETE FROM log_leaf');
});

test('records of almost five years may not be deleted', { skip }, async (t) => {
  const client = await recorded(t, fiveYearsAgo(2));
  for (const { table, ofRemoval } of retained) await rejectsEach(client, ofRemoval, `DELETE FROM ${table}`);
});

/** Erasures of a row that do something else to one of its columns. */
function* otherErasures(table: string, values: Readonly<Record<string, string>>): Generator<string> {
  for (const name of Object.keys({ ...rowsAt(1)[table], ...values })) {
    // A text, a number and bytes.
    const other = name === 'erased_at_s' ? 'NULL' : "'9'";
    yield `UPDATE ${table} SET ${assigned({ ...values, [name]: other })}`;
  }
}

test('a filing older than five years may be erased as a whole, once', { skip }, async (t) => {
  const client = await recorded(t, fiveYearsAgo(-2));
  await rejectsEach(client, 'a filing never changes', ...otherErasures('filing', erasure));
  const others = otherErasures('provenance_record', recordErasure);
  await rejectsEach(client, 'a provenance record never changes', ...others);
  await client.query(erase);
  await client.query(eraseRecord);
  const again = [erase, "UPDATE filing SET author = 'Forger', erased_at_s = NULL"];
  await rejectsEach(client, 'a filing never changes', ...again);
  const salted = ["UPDATE provenance_record SET salt = '\\x01'", eraseRecord];
  await rejectsEach(client, 'a provenance record never changes', ...salted);
});

test('a party is removed once, and a restoration served once', { skip }, async (t) => {
  const client = await recorded(t, nowS());
  await client.query('INSERT INTO restoration (id, taken_at_s, restored_at_s) VALUES (2, 1, 2)');
  await client.query('UPDATE restoration SET served_at_s = 3 WHERE id = 2');
  await rejectsEach(client, 'a restoration never changes', 'UPDATE restoration SET served_at_s = 4');
  await client.query('UPDATE party SET removed_at_s = 2');
  const message = 'a party never changes, it is removed';
  await rejectsEach(
    client,
    message,
    'UPDATE party SET removed_at_s = 3',
    'UPDATE party SET removed_at_s = NULL',
  );
});

test('events and leaves that follow the last ones are stored', { skip }, async (t) => {
  const client = await recorded(t, nowS());
  for (const statement of [event(2, 3), event(5, 7), event(8), leaf("(2, '', '', 2), (9, '', '', 3)")])
    await client.query(statement);
});

test('each promise that a trigger keeps on SQLite has one on PostgreSQL', { skip }, async (t) => {
  const client = await recorded(t, nowS());
  const made = sqliteMigrations.flatMap(({ sql }) =>
    Array.from(sql.matchAll(/CREATE TRIGGER `(\w+)`/g), ([, name = '']) => name),
  );
  // Unique indexes do what the former are for; SQLite alone has the chain of the latter.
  const promises = made.filter((name) => !/_never_replaced$|^filing_is_latest$/.test(name));
  const truncations = kept.map(({ table }) => `${table}_is_not_truncated`);
  const { rows } = await client.query<{ name: string }>(
    "SELECT tgname AS name FROM pg_trigger WHERE NOT tgisinternal AND tgname NOT LIKE '%_takes_id'",
  );
  assert.deepEqual(
    rows.map(({ name }) => name).sort(),
    [...promises.map((name) => name.replace('event_log', 'event')), ...truncations].sort(),
  );
});
