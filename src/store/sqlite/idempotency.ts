import { and, eq, isNull, lte, sql } from 'drizzle-orm';
import { type IdempotencyStanding, type IdempotencyStore, idempotencyRetentionS } from '../store.ts';
import type { Database } from './database.ts';
import type { GroupCommit } from './group-commit.ts';
import { idempotencyKey } from './schema.ts';

/** How many forgotten keys a claim sweeps away: more than one, so that the sweep overtakes the claims. */
const sweptPerClaim = 2;

/** Forgets the keys of calls that ended with their process. */
export function releaseUnanswered(database: Database, { write }: GroupCommit): void {
  write(() => database.delete(idempotencyKey).where(isNull(idempotencyKey.status)).run());
}

/** Idempotency keys and the answers kept under them. */
export function createIdempotencyStore(database: Database, { write }: GroupCommit): IdempotencyStore {
  const isKey = and(
    eq(idempotencyKey.callerId, sql.placeholder('callerId')),
    eq(idempotencyKey.key, sql.placeholder('key')),
  );
  const sweep = database
    .delete(idempotencyKey)
    .where(lte(idempotencyKey.claimedAtS, sql.placeholder('forgottenS')))
    .orderBy(idempotencyKey.claimedAtS)
    .limit(sweptPerClaim)
    .prepare();
  const forgetOld = database
    .delete(idempotencyKey)
    .where(and(isKey, lte(idempotencyKey.claimedAtS, sql.placeholder('forgottenS'))))
    .prepare();
  const select = database.select().from(idempotencyKey).where(isKey).prepare();
  const insert = database
    .insert(idempotencyKey)
    .values({
      callerId: sql.placeholder('callerId'),
      key: sql.placeholder('key'),
      fingerprint: sql.placeholder('fingerprint'),
      claimedAtS: sql.placeholder('nowS'),
    })
    .prepare();
  const release = database.delete(idempotencyKey).where(isKey).prepare();

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
          ? { kind: 'RUNNING' }
          : { kind: 'ANSWERED', answer: { status, body } };
      }),
    keep: async (callerId, key, { status, body }) => {
      write(() => {
        const isThis = and(eq(idempotencyKey.callerId, callerId), eq(idempotencyKey.key, key));
        database.update(idempotencyKey).set({ status, body }).where(isThis).run();
      });
    },
    release: async (callerId, key) => {
      write(() => release.run({ callerId, key }));
    },
  };
}
