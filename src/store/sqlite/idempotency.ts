import { and, eq, isNull, lte, sql } from 'drizzle-orm';
import {
  type IdempotencyStanding,
  type IdempotencyStore,
  idempotencyRetentionS,
  type Work,
} from '../store.ts';
import type { Database } from './database.ts';
import type { GroupCommit } from './group-commit.ts';
import { idempotencyKey as keyRow } from './schema.ts';
import { prepareHot } from './statement.ts';

/** How many forgotten keys a claim sweeps away: more than one, so that the sweep overtakes the claims. */
const sweptPerClaim = 2;

const isKey = and(eq(keyRow.callerId, sql.placeholder('callerId')), eq(keyRow.key, sql.placeholder('key')));

/** Which instruction a call gave that claimed an idempotency key. */
export interface OperationBinding {
  /** The instruction of an earlier call under the same key. */
  operationOf(work: Work): string | undefined;
  /** Remembers the instruction with the key. Runs inside the effect that prepares it. */
  bind(work: Work): void;
}

/** The bindings of a database. */
export function createOperationBinding(database: Database): OperationBinding {
  const select = prepareHot<{ operation_id: string | null }>(
    database,
    database.select({ operationId: keyRow.operationId }).from(keyRow).where(isKey),
  );
  const update = prepareHot(
    database,
    database
      .update(keyRow)
      .set({ operationId: sql`${sql.placeholder('operationId')}` })
      .where(isKey),
  );
  return {
    operationOf: ({ callerId, idempotencyKey: key }) =>
      key === undefined ? undefined : (select.get({ callerId, key })?.operation_id ?? undefined),
    bind: ({ callerId, idempotencyKey: key, operationId }) => {
      if (key !== undefined) update.run({ callerId, key, operationId });
    },
  };
}

/** Idempotency keys and the answers kept under them. */
export function createIdempotencyStore(database: Database, { write }: GroupCommit): IdempotencyStore {
  const sweep = database
    .delete(keyRow)
    .where(lte(keyRow.claimedAtS, sql.placeholder('forgottenS')))
    .orderBy(keyRow.claimedAtS)
    .limit(sweptPerClaim)
    .prepare();
  const forgetOld = database
    .delete(keyRow)
    .where(and(isKey, lte(keyRow.claimedAtS, sql.placeholder('forgottenS'))))
    .prepare();
  const select = database.select().from(keyRow).where(isKey).prepare();
  const insert = database
    .insert(keyRow)
    .values({
      callerId: sql.placeholder('callerId'),
      key: sql.placeholder('key'),
      fingerprint: sql.placeholder('fingerprint'),
      claimedAtS: sql.placeholder('nowS'),
    })
    .prepare();
  const release = database
    .delete(keyRow)
    .where(and(isKey, isNull(keyRow.status), isNull(keyRow.operationId)))
    .prepare();

  return {
    claim: async ({ callerId, key, fingerprint, nowS }) =>
      write((): IdempotencyStanding => {
        const forgottenS = nowS - idempotencyRetentionS;
        forgetOld.run({ callerId, key, forgottenS });
        sweep.run({ forgottenS });
        const known = select.get({ callerId, key });
        if (known === undefined) {
          insert.run({ callerId, key, fingerprint: Buffer.from(fingerprint), nowS });
          return { kind: 'CLAIMED' };
        }
        if (!known.fingerprint.equals(fingerprint)) return { kind: 'REUSED' };
        const { status, body } = known;
        return status === null || body === null
          ? { kind: 'CLAIMED' }
          : { kind: 'ANSWERED', answer: { status, body } };
      }),
    keep: async (callerId, key, { status, body }) => {
      write(() => {
        const isThis = and(eq(keyRow.callerId, callerId), eq(keyRow.key, key));
        database.update(keyRow).set({ status, body }).where(isThis).run();
      });
    },
    release: async (callerId, key) => {
      write(() => release.run({ callerId, key }));
    },
  };
}
