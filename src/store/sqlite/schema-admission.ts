import { blob, index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core';

/** Spent nonces, a row for those of one transaction and window of time. */
export const spentNonces = sqliteTable(
  'spent_nonces',
  {
    id: integer().primaryKey(),
    window: integer().notNull(),
    /** As nonce-entries.ts writes them. */
    entries: blob({ mode: 'buffer' }).notNull(),
  },
  (table) => [index('spent_nonces_by_window').on(table.window)],
);

/** Calls counted, a row a platform and month (YYYY-MM). */
export const usage = sqliteTable(
  'usage',
  {
    callerId: integer('caller_id').notNull(),
    month: text().notNull(),
    calls: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.callerId, table.month] })],
);

/** Idempotency keys, each with the result or the instruction of the call that claimed it. */
export const idempotencyKey = sqliteTable(
  'idempotency_key',
  {
    callerId: integer('caller_id').notNull(),
    key: text().notNull(),
    fingerprint: blob({ mode: 'buffer' }).notNull(),
    claimedAtS: integer('claimed_at_s').notNull(),
    /** The instruction of the call, whose current state a replay returns. */
    instructionId: text('instruction_id'),
    /** The result of the command, serialised by node:v8; null if there is an instruction. */
    outcome: blob({ mode: 'buffer' }),
    /** The request id of the call that claimed it. */
    requestId: text('request_id'),
  },
  (table) => [
    primaryKey({ columns: [table.callerId, table.key] }),
    index('idempotency_key_by_age').on(table.claimedAtS),
  ],
);
