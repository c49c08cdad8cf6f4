import { and, eq, lte, sql } from 'drizzle-orm';
import { claimedKey, replacedOutcome, resultOfClaim } from '../engine/idempotency.ts';
import type { RequestParts } from '../engine/requests.ts';
import { idempotencyKey as keyRow } from '../engine/schema.ts';
import { placeholders, placeholdersFor, prepareMapped } from '../engine/statement.ts';
import { idempotencyRetentionS } from '../store.ts';
import { prepare, type SqliteDatabase } from './statement.ts';

/** Expired keys that a lookup deletes: more than one, so that they cannot pile up. */
const sweptPerLookUp = 2;

/** Idempotency keys and the results of their calls. All methods run inside a transaction. */
export function createIdempotencyKeys(database: SqliteDatabase): RequestParts['keys'] {
  const isKey = and(eq(keyRow.callerId, sql.placeholder('callerId')), eq(keyRow.key, sql.placeholder('key')));
  const isForgotten = lte(keyRow.claimedAtS, sql.placeholder('forgottenS'));
  const { forget, sweep, insert, update } = prepare(database, {
    forget: database.delete(keyRow).where(and(isKey, isForgotten)),
    sweep: database.delete(keyRow).where(isForgotten).orderBy(keyRow.claimedAtS).limit(sweptPerLookUp),
    insert: database.insert(keyRow).values(placeholdersFor(keyRow)),
    update: database.update(keyRow).set(placeholders('outcome')).where(isKey),
  });
  const select = prepareMapped(database.select().from(keyRow).where(isKey));
  return {
    find: (claim, sweepAtS) => {
      const { callerId, key } = claim;
      const forgottenS = sweepAtS - idempotencyRetentionS;
      forget.run({ callerId, key, forgottenS });
      sweep.run({ forgottenS });
      const known = select.get({ callerId, key });
      return known && resultOfClaim(known, claim);
    },
    keep: (claim, nowS, kind, outcome) => {
      const row = claimedKey(claim, nowS, kind, outcome);
      if (row !== undefined) insert.run({ ...row });
    },
    replace: ({ callerId, key }, result) => {
      const outcome = replacedOutcome(result);
      if (outcome !== undefined) update.run({ callerId, key, outcome });
    },
  };
}
