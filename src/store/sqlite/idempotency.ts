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

/** How many forgotten keys a claim sweeps away: more than one, so that the sweep overtakes the claims. */
const sweptPerClaim = 2;

/** Which instruction a call gave that claimed an idempotency key. */
export interface OperationBinding {
  /** The instruction of an earlier call under the same key. */
  operationOf(work: Work): string | undefined;
  /** Remembers the instruction with the key. Runs inside the effect that prepares it. */
  bind(work: Work): void;
}

/** The bindings of a database. */
export function createOperationBinding(database: Database): OperationBinding {
  const isKeyOf = ({ callerId, idempotencyKey }: Work) =>
    and(eq(keyRow.callerId, callerId), eq(keyRow.key, idempotencyKey ?? ''));
  return {
    operationOf: (work) => {
      if (work.idempotencyKey === undefined) return undefined;
      const columns = { operationId: keyRow.operationId };
      return database.select(columns).from(keyRow).where(isKeyOf(work)).get()?.operationId ?? undefined;
    },
    bind: (work) => {
      if (work.idempotencyKey === undefined) return;
      const { operationId } = work;
      database.update(keyRow).set({ operationId }).where(isKeyOf(work)).run();
    },
  };
}

/** Idempotency keys and the answers kept under them. */
export function createIdempotencyStore(database: Database, { write }: GroupCommit): IdempotencyStore {
  const isKey = and(eq(keyRow.callerId, sql.placeholder('callerId')), eq(keyRow.key, sql.placeholder('key')));
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
