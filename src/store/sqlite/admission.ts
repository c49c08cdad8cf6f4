import { and, eq, isNull, lt, notExists, sql } from 'drizzle-orm';
import { type AdmissionStore, nonceRetentionS } from '../store.ts';
import { keyColumns, tokenColumns } from './callers.ts';
import type { Database } from './database.ts';
import type { GroupCommit } from './group-commit.ts';
import type { KeyCache } from './key-cache.ts';
import { apiKey, caller, nonceClaim, serviceToken, usage } from './schema.ts';
import { prepareHot } from './statement.ts';

/**
 * The windows that may hold a nonce that is remembered, next to the current one. A window is as long as retention,
 * so there is one on each side: the clock may have been set back since.
 */
const nonceWindows = [-1, 0, 1];
/** Forgotten nonces are swept away once in so many claims, twice as many at a time, so that the sweep keeps up. */
const claimsPerSweep = 64;

/** Keys, tokens, nonces and quotas: what is asked on every call. */
export function createAdmissionStore(
  database: Database,
  { read, writeStatement }: GroupCommit,
  keys: KeyCache,
): AdmissionStore {
  const selectKeys = database
    .select(keyColumns)
    .from(apiKey)
    .innerJoin(caller, eq(caller.id, apiKey.callerId))
    .prepare();
  const selectToken = database
    .select(tokenColumns)
    .from(serviceToken)
    .innerJoin(caller, eq(caller.id, serviceToken.callerId))
    .where(and(eq(serviceToken.sha256, sql.placeholder('sha256')), isNull(serviceToken.revokedAtS)))
    .prepare();

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
  const claim = ['window', 'keyId', 'nonce', 'nowS'].map((name) => sql.placeholder(name));
  const claimNonce = prepareHot(
    database,
    // Never in conflict: of one window, all is remembered.
    database
      .insert(nonceClaim)
      .select(sql`SELECT ${sql.join(claim, sql`, `)} WHERE ${notExists(remembered)}`),
  );
  const sweepNonces = database
    .delete(nonceClaim)
    .where(lt(nonceClaim.window, sql.placeholder('oldest')))
    .limit(2 * claimsPerSweep)
    .prepare();
  let claimsUntilSweep = claimsPerSweep;

  function sweepNow(atS: number): void {
    claimsUntilSweep -= 1;
    if (claimsUntilSweep > 0) return;
    claimsUntilSweep = claimsPerSweep;
    writeStatement(() => sweepNonces.run({ oldest: windowOf(atS) - 1 }));
  }

  const count = prepareHot(
    database,
    database
      .insert(usage)
      .values({ callerId: sql.placeholder('callerId'), month: sql.placeholder('month'), calls: 1 })
      .onConflictDoUpdate({
        target: [usage.callerId, usage.month],
        set: { calls: sql`${usage.calls} + 1` },
      }),
  );
  const ofMonth = and(
    eq(usage.callerId, sql.placeholder('callerId')),
    eq(usage.month, sql.placeholder('month')),
  );
  const selectCalls = prepareHot<{ calls: number }>(
    database,
    database.select({ calls: usage.calls }).from(usage).where(ofMonth),
  );

  return {
    findKey: async (name) => read(() => keys.get(name, () => selectKeys.all())),
    findToken: async (sha256) => read(() => selectToken.get({ sha256 })),
    claimNonce: async ({ keyId, nonce, nowS, sweepAtS = nowS }) => {
      const values = { window: windowOf(nowS), keyId, nonce, nowS };
      const claimed = writeStatement(() => claimNonce.run(values));
      sweepNow(sweepAtS);
      return claimed === 1;
    },
    countCall: async (callerId, month) => {
      writeStatement(() => count.run({ callerId, month }));
    },
    callsIn: async (callerId, month) => read(() => selectCalls.get({ callerId, month })?.calls ?? 0),
  };
}

/** Nonces of the same window are stored side by side. */
function windowOf(atS: number): number {
  return Math.floor(atS / nonceRetentionS);
}
