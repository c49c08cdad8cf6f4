import { and, eq, lt, notExists, sql } from 'drizzle-orm';
import { type NonceClaim, nonceRetentionS } from '../store.ts';
import type { Database } from './database.ts';
import { nonceClaim } from './schema.ts';
import { prepareRaw } from './statement.ts';

/**
 * The windows that may hold a nonce that is remembered, next to the current one. A window is as long as retention,
 * so there is one on each side: the clock may have been set back since.
 */
const nonceWindows = [-1, 0, 1];
/** Forgotten nonces are swept away once in so many claims, twice as many at a time, so that the sweep keeps up. */
const claimsPerSweep = 64;

/** Spends a nonce at `nowS`, Unix seconds: false if it is spent already. Runs inside a transaction. */
export type SpendNonce = (claim: NonceClaim, nowS: number) => boolean;

/** The spent nonces of a database. */
export function createNonces(database: Database): SpendNonce {
  const windows = nonceWindows.map((place) => sql`${sql.placeholder('window')} + ${place}`);
  const remembered = database
    .select({ one: sql`1` })
    .from(nonceClaim)
    .where(
      and(
        // Listed, not a range: each window is one look-up in the primary key.
        sql`${nonceClaim.window} IN (${sql.join(windows, sql`, `)})`,
        eq(nonceClaim.apiKeyId, sql.placeholder('keyId')),
        eq(nonceClaim.nonce, sql.placeholder('nonce')),
        sql`abs(${nonceClaim.claimedAtS} - ${sql.placeholder('nowS')}) < ${nonceRetentionS}`,
      ),
    );
  const values = ['window', 'keyId', 'nonce', 'nowS'].map((name) => sql.placeholder(name));
  const claim = prepareRaw(
    database,
    // Never in conflict: of one window, all is remembered.
    database
      .insert(nonceClaim)
      .select(sql`SELECT ${sql.join(values, sql`, `)} WHERE ${notExists(remembered)}`),
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
    const claimed = claim.run({ window: windowOf(nowS), keyId, nonce, nowS }) === 1;
    claimsUntilSweep -= 1;
    if (claimsUntilSweep <= 0) {
      claimsUntilSweep = claimsPerSweep;
      sweep.run({ oldest: windowOf(sweepAtS) - 1 });
    }
    return claimed;
  };
}

/** Nonces of the same window are stored side by side. */
function windowOf(atS: number): number {
  return Math.floor(atS / nonceRetentionS);
}
