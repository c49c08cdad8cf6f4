import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { deserialize } from 'node:v8';
import Sqlite from 'better-sqlite3';
import pg from 'pg';
import { ApiError } from '../../src/domain/reason.ts';
import { types } from '../../src/store/postgres/statement.ts';
import { openPostgresStore } from '../../src/store/postgres/store.ts';
import { migrate } from '../../src/store/postgres/upgrade.ts';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { databaseFile } from '../../src/store/sqlite/location.ts';
import {
  type Executed,
  idempotencyRetentionS,
  type Store,
  type StoreRequest,
} from '../../src/store/store.ts';
import { createDatabase } from '../support/postgres.ts';
import type { Random } from '../support/random.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { sandbox } from './promises/fixtures.ts';
import { createRandomRequests } from './random-requests.ts';

/** A store, and how its tables are read without it. */
interface Engine {
  readonly store: Store;
  /** Runs statements. */
  readonly run: (sql: string) => Promise<unknown>;
  readonly rows: (query: string) => Promise<Row[]>;
}

type Row = Record<string, unknown>;

/** The two engines on new databases of the same deployment. */
async function openBoth(t: TestContext): Promise<{ readonly sqlite: Engine; readonly postgres: Engine }> {
  const dataDir = temporaryFolder(t);
  const sqliteStore = createSqliteStore({ dataDir, ...sandbox });
  t.after(() => sqliteStore.close());
  const raw = new Sqlite(databaseFile(dataDir));
  t.after(() => raw.close());
  const { secret } = raw.prepare('SELECT secret FROM deployment').get() as { readonly secret: Buffer };
  const url = await createDatabase(t, {
    template: async (template) => {
      const client = new pg.Client({ connectionString: template });
      await client.connect();
      await migrate(client);
      await client.end();
    },
  });
  const client = new pg.Client({ connectionString: url, types });
  await client.connect();
  // Ids of orders depend on the secret.
  const { environment, currency } = sandbox;
  await client.query('INSERT INTO deployment (id, environment, secret, currency) VALUES (1, $1, $2, $3)', [
    environment,
    secret,
    currency,
  ]);
  const postgresStore = await openPostgresStore({ place: { url }, ...sandbox });
  t.after(async () => {
    await postgresStore.close();
    await client.end();
  });
  return {
    sqlite: {
      store: sqliteStore,
      run: async (sql) => raw.exec(sql),
      rows: async (query) => raw.prepare<[], Row>(query).all(),
    },
    postgres: {
      store: postgresStore,
      run: (sql) => client.query(sql),
      rows: async (query) => (await client.query<Row>(query)).rows,
    },
  };
}

/** What a store replied: the result of a request, or the error that it rejected with. */
type Reply = { readonly executed: Executed } | { readonly error: unknown };

/**
 * Replies in which equal things are equal. Cursors of lists are ids of rows, and PostgreSQL leaves some out: they are replaced by their
 * numbers among all cursors of the engine.
 */
function createCursors() {
  const cursors: unknown[] = [];
  return {
    sent: (request: StoreRequest): StoreRequest => {
      const { effect } = request;
      if (effect === undefined || !('page' in effect) || effect.page.from === undefined) return request;
      const page = { ...effect.page, from: cursors[effect.page.from] };
      return { ...request, effect: { ...effect, page } as typeof effect };
    },
    received: (reply: Reply, { effect }: StoreRequest): Reply => {
      if (effect === undefined || !('page' in effect) || 'error' in reply) return reply;
      const { outcome } = reply.executed;
      if (outcome.kind !== 'DONE') return reply;
      const result = outcome.result as { readonly next: number | undefined };
      if (result.next === undefined) return reply;
      const next = cursors.push(result.next) - 1;
      return {
        executed: { ...reply.executed, outcome: { ...outcome, result: { ...result, next } as never } },
      };
    },
  };
}

/** Submits requests together. Returns the replies in their order. */
async function submit(store: Store, requests: readonly StoreRequest[]): Promise<Reply[]> {
  const replies = await Promise.allSettled(requests.map((request) => store.execute(request)));
  return replies.map((reply) =>
    reply.status === 'fulfilled' ? { executed: reply.value } : { error: reply.reason },
  );
}

/** Members whose values follow from the salts of leaves, which are random, and the clock of a database server. */
const differing = new Set(['salt', 'root', 'stored', 'commitment', 'databaseMs']);

/**
 * What has to be equal in two values. Hashes of the tree follow from the salts, so only their number is compared. Each database has words
 * of its own for a broken constraint.
 */
function comparable(value: unknown): unknown {
  if (value instanceof ApiError) {
    const { reason, message, hints } = value;
    return { reason, message, hints };
  }
  if (value instanceof Error) return isOfDatabase(value) ? 'a constraint was broken' : value.message;
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
  if (Array.isArray(value)) return value.map(comparable);
  if (typeof value !== 'object' || value === null) return value;
  // Open instructions of a case have the id of their row.
  const isLeftOut = (name: string) => differing.has(name) || (name === 'id' && 'instructionId' in value);
  const members = Object.entries(value).filter(([name, member]) => !isLeftOut(name) && member !== undefined);
  return Object.fromEntries(members.map(([name, member]) => [name, comparable(member)]));
}

/** Whether an error says that a constraint of the tables was broken. */
const isOfDatabase = ({ message }: Error): boolean => /constraint/.test(message);

/** The same for the reply to a request. */
function comparableReply(reply: Reply, { effect }: StoreRequest): unknown {
  if ('error' in reply) return comparable(reply.error);
  const { outcome, ...rest } = reply.executed;
  if (outcome.kind !== 'DONE') return comparable(reply.executed);
  return comparable({ ...rest, outcome: { ...outcome, result: withoutHashes(outcome.result, effect) } });
}

function withoutHashes(result: unknown, effect: StoreRequest['effect']): unknown {
  if (result === undefined) return undefined;
  switch (effect?.kind) {
    case 'ReadSubtrees':
      return (result as Uint8Array).length;
    case 'ProveConsistency':
      return (result as unknown[]).length;
    case 'ReadLeaves':
      return (result as readonly string[]).map((leaf) => JSON.parse(leaf));
    case 'ProveInclusion': {
      const { leaf, path } = result as { readonly leaf: string; readonly path: readonly unknown[] };
      return { leaf: JSON.parse(leaf), path: path.length };
    }
    default:
      return result;
  }
}

/**
 * Sends both engines the same requests, at least so many, and asserts that replies and tables are equal. After half of them, another
 * process may change both databases by SQL.
 */
export async function assertAgreement(
  t: TestContext,
  random: Random,
  requests: number,
  later?: { readonly sqlite: string; readonly postgres: string },
): Promise<void> {
  const { sqlite, postgres } = await openBoth(t);
  const [ofSqlite, ofPostgres] = [createCursors(), createCursors()];
  const made = createRandomRequests(random);
  let sent = 0;

  async function exchange(batch: readonly StoreRequest[]): Promise<void> {
    const replies = (await submit(sqlite.store, batch.map(ofSqlite.sent))).map((reply, nth) =>
      ofSqlite.received(reply, batch[nth] as StoreRequest),
    );
    const others = (await submit(postgres.store, batch.map(ofPostgres.sent))).map((reply, nth) =>
      ofPostgres.received(reply, batch[nth] as StoreRequest),
    );
    for (const [nth, request] of batch.entries()) {
      const [reply, other] = [replies[nth] as Reply, others[nth] as Reply];
      assert.deepEqual(
        comparableReply(other, request),
        comparableReply(reply, request),
        `seed ${random.seed}, request ${sent + nth}, ${nth} of ${batch.length} submitted together`,
      );
      if ('executed' in reply) made.learn(request, reply.executed);
    }
    sent += batch.length;
  }

  async function exchangeUntil(count: number): Promise<void> {
    while (sent < count) {
      await exchange(made.nextBatch());
      if (made.isPeriodOver()) for (const request of made.pause()) await exchange([request]);
    }
  }

  await exchangeUntil(requests / 2);
  if (later !== undefined) {
    await sqlite.run(later.sqlite);
    await postgres.run(later.postgres);
  }
  await exchangeUntil(requests);
  for (const [what, read] of Object.entries(contents)) {
    const [expected, found] = [await read(sqlite, made.sweptAtS()), await read(postgres, made.sweptAtS())];
    const title = `seed ${random.seed}: ${what} after ${sent} requests`;
    for (const [nth, row] of expected.entries()) assert.deepEqual(found[nth], row, title);
    assert.equal(found.length, expected.length, title);
  }
}

/** Reads rows of an engine, without `left` columns. */
const table =
  (name: string, order: string, ...left: readonly string[]) =>
  async ({ rows }: Engine): Promise<readonly unknown[]> =>
    (await rows(`SELECT * FROM ${name} ORDER BY ${order}`)).map((row) =>
      comparable(Object.fromEntries(Object.entries(row).filter(([column]) => !left.includes(column)))),
    );

/**
 * What both engines have stored, in the same form. Ids of rows that no other row refers to are left out: PostgreSQL does not give an id
 * again that a transaction took and rolled back.
 */
const contents: Readonly<Record<string, (engine: Engine, sweptAtS: number) => Promise<readonly unknown[]>>> =
  {
    callers: table('caller', 'id'),
    keys: table('api_key', 'id'),
    tokens: table('service_token', 'id'),
    parties: table('party', 'id'),
    usage: table('usage', 'caller_id, month'),
    numbers: table('number_sequence', 'kind, year'),
    // PostgreSQL has an index in place of the chain of a caller's filings.
    filings: table('filing', 'filing_no', 'id', 'previous_id'),
    'provenance records': table('provenance_record', 'filing_no, position'),
    links: table('evidence_link', 'link_id', 'id'),
    orders: table('escrow', 'id'),
    instructions: table('escrow_instruction', 'instruction_id', 'id'),
    'changes of orders': table('escrow_change', 'order_id, position'),
    notifications: table('provider_notification', 'event_id'),
    webhooks: table('webhook', 'id'),
    deliveries: table('webhook_delivery', 'webhook, sequence'),
    'audit entries': table('audit_entry', 'id', 'id'),
    'log events': table('log_event', 'sequence'),
    'log origins': table('log_origin', 'id', 'id'),
    'log keys': table('log_key', 'id', 'id'),
    checkpoints: table('log_checkpoint', 'size'),
    deployment: table('deployment', 'id'),
    // Expired ones are deleted in the end, not at the same time.
    'idempotency keys': async ({ rows }, sweptAtS) =>
      (
        await rows(
          `SELECT * FROM idempotency_key WHERE claimed_at_s > ${sweptAtS - idempotencyRetentionS} ORDER BY caller_id, key`,
        )
      ).map(({ outcome, ...row }) =>
        comparable({ ...row, outcome: outcome && deserialize(outcome as Buffer) }),
      ),
    leaves: async ({ rows }) =>
      (await rows('SELECT data FROM log_leaf ORDER BY id')).flatMap(({ data }) =>
        `${data}`.split('\n').map((line) => comparable(JSON.parse(line))),
      ),
    events: async ({ store }) => {
      const events: unknown[] = [];
      for (let after: number | undefined; ; ) {
        const { outcome } = await store.execute<'ReadAllEvents'>({
          effect: { kind: 'ReadAllEvents', after },
        });
        assert.ok(outcome.kind === 'DONE');
        if (outcome.result.events.length === 0) return events;
        events.push(...outcome.result.events);
        after = outcome.result.next;
      }
    },
  };
