import { and, eq, inArray, lt, sql } from 'drizzle-orm';
import { type NonceClaim, nonceRetentionS } from '../store.ts';
import type { Database } from './database.ts';
import { nonceClaim } from './schema.ts';
import { placeholdersFor, prepareRaw } from './statement.ts';

/** Forgotten nonces are swept away once in so many claims, twice as many at a time, so that the sweep keeps up. */
const claimsPerSweep = 64;

/** Spends a nonce at `nowS`, Unix seconds: false if it is spent already. Runs inside a transaction. */
export type SpendNonce = (claim: NonceClaim, nowS: number) => boolean;

/** The spent nonces of a database. */
export function createNonces(database: Database): SpendNonce {
  // A window is as long as retention, so what is remembered is in the current one, whose primary key tells, or in one of
  // those beside it: the clock may have been set back since.
  const rememberedBeside = prepareRaw(
    database,
    database
      .select({ one: sql`1` })
      .from(nonceClaim)
      .where(
        and(
          inArray(nonceClaim.window, [sql.placeholder('before'), sql.placeholder('after')]),
          eq(nonceClaim.apiKeyId, sql.placeholder('apiKeyId')),
          eq(nonceClaim.nonce, sql.placeholder('nonce')),
          sql`abs(${nonceClaim.claimedAtS} - ${sql.placeholder('claimedAtS')}) < ${nonceRetentionS}`,
        ),
      ),
  );
  const claim = prepareRaw(
    database,
    database.insert(nonceClaim).values(placeholdersFor(nonceClaim)).onConflictDoNothing(),
  );
  const sweep = prepareRaw(
    database,
    database
      .delete(nonceClaim)
      .where(lt(nonceClaim.window, sql.placeholder('oldest')))
      .limit(2 * claimsPerSweep),
  );
  let claimsUntilSweep = claimsPerSweep;

  return ({ keyId, nonce, sweepAtS }, nowS) => {
    const window = windowOf(nowS);
    const claimed = {
      window,
      before: window - 1,
      after: window + 1,
      apiKeyId: keyId,
      nonce,
      claimedAtS: nowS,
    };
    const isFirst = rememberedBeside.get(claimed) === undefined && claim.run(claimed) === 1;
    claimsUntilSweep -= 1;
    if (claimsUntilSweep <= 0) {
      claimsUntilSweep = claimsPerSweep;
      sweep.run({ oldest: windowOf(sweepAtS) - 1 });
    }
    return isFirst;
  };
}

/** Nonces of the same window are stored side by side. */
function windowOf(atS: number): number {
  return Math.floor(atS / nonceRetentionS);
}
