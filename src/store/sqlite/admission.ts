import { and, eq, gt, isNull, lt, notExists, sql } from 'drizzle-orm';
import { type AdmissionStore, nonceRetentionS } from '../store.ts';
import { keyColumns, tokenColumns } from './callers.ts';
import type { Database } from './database.ts';
import type { GroupCommit } from './group-commit.ts';
import type { KeyCache } from './key-cache.ts';
import { apiKey, caller, nonceClaim, serviceToken, usage } from './schema.ts';
import { prepareHot } from './statement.ts';

/** Nonces spent within the same window of this length are stored side by side. */
const nonceWindowS = nonceRetentionS / 2;
/** Windows that may hold a nonce that is still remembered: the current one and as many before it as retention spans. */
const nonceWindows = 1 + nonceRetentionS / nonceWindowS;
/** Forgotten nonces are swept away once in so many claims, twice as many at a time, so that the sweep keeps up. */
const claimsPerSweep = 64;

/** Keys, tokens, nonces and quotas: what is asked on every call. */
export function createAdmissionStore(
  database: Database,
  { read, writeStatement }: GroupCommit,
  keys: KeyCache,
): AdmissionStore {
  const selectKey = database
    .select(keyColumns)
    .from(apiKey)
    .innerJoin(caller, eq(caller.id, apiKey.callerId))
    .where(eq(apiKey.apiKey, sql.placeholder('apiKey')))
    .prepare();
  const selectToken = database
    .select(tokenColumns)
    .from(serviceToken)
    .innerJoin(caller, eq(caller.id, serviceToken.callerId))
    .where(and(eq(serviceToken.sha256, sql.placeholder('sha256')), isNull(serviceToken.revokedAtS)))
    .prepare();

  const windows = Array.from(
    { length: nonceWindows },
    (_, age) => sql`${sql.placeholder('window')} - ${age}`,
  );
  const remembered = database
    .select({ one: sql`1` })
    .from(nonceClaim)
    .where(
      and(
        // Listed, not a range: each window is one look-up in the primary key.
        sql`${nonceClaim.window} IN (${sql.join(windows, sql`, `)})`,
        eq(nonceClaim.apiKeyId, sql.placeholder('keyId')),
        eq(nonceClaim.nonce, sql.placeholder('nonce')),
        gt(nonceClaim.claimedAtS, sql.placeholder('forgottenS')),
      ),
    );
  const claim = ['window', 'keyId', 'nonce', 'nowS'].map((name) => sql.placeholder(name));
  const claimNonce = prepareHot(
    database,
    database
      .insert(nonceClaim)
      .select(sql`SELECT ${sql.join(claim, sql`, `)} WHERE ${notExists(remembered)}`)
      // Where the clock was set back, a window outlasts the memory of its first nonces.
      .onConflictDoUpdate({
        target: [nonceClaim.window, nonceClaim.apiKeyId, nonceClaim.nonce],
        set: { claimedAtS: sql`excluded.claimed_at_s` },
      }),
  );
  const sweepNonces = database
    .delete(nonceClaim)
    .where(lt(nonceClaim.window, sql.placeholder('oldest')))
    .limit(2 * claimsPerSweep)
    .prepare();
  const newestWindow = database
    .select({ window: sql<number>`coalesce(max(${nonceClaim.window}), 0)` })
    .from(nonceClaim);
  // A clock that is set back must not bring back the nonces of the time after it: windows never go back.
  let latestWindow: number | undefined;
  let claimsUntilSweep = claimsPerSweep;

  function sweepNow(): void {
    claimsUntilSweep -= 1;
    if (claimsUntilSweep > 0 || latestWindow === undefined) return;
    claimsUntilSweep = claimsPerSweep;
    const oldest = latestWindow - nonceWindows + 1;
    writeStatement(() => sweepNonces.run({ oldest }));
  }

  const count = prepareHot<{ calls: number }>(
    database,
    database
      .insert(usage)
      .values({ callerId: sql.placeholder('callerId'), month: sql.placeholder('month'), calls: 1 })
      .onConflictDoUpdate({
        target: [usage.callerId, usage.month],
        set: { calls: sql`${usage.calls} + 1` },
        setWhere: lt(usage.calls, sql.placeholder('quota')),
      })
      .returning({ calls: usage.calls }),
  );
  const ofMonth = and(
    eq(usage.callerId, sql.placeholder('callerId')),
    eq(usage.month, sql.placeholder('month')),
  );
  const giveBack = database
    .update(usage)
    .set({ calls: sql`${usage.calls} - 1` })
    .where(and(ofMonth, gt(usage.calls, 0)))
    .prepare();
  const selectCalls = database.select({ calls: usage.calls }).from(usage).where(ofMonth).prepare();

  return {
    findKey: async (name) => read(() => keys.get(name, () => selectKey.get({ apiKey: name }))),
    findToken: async (sha256) => read(() => selectToken.get({ sha256 })),
    claimNonce: async ({ keyId, nonce, nowS }) => {
      latestWindow ??= read(() => newestWindow.get()?.window ?? 0);
      latestWindow = Math.max(latestWindow, Math.floor(nowS / nonceWindowS));
      const values = { window: latestWindow, keyId, nonce, nowS, forgottenS: nowS - nonceRetentionS };
      const claimed = writeStatement(() => claimNonce.run(values));
      sweepNow();
      return claimed === 1;
    },
    countCall: async (callerId, month, quota = Number.MAX_SAFE_INTEGER) =>
      writeStatement(() => count.get({ callerId, month, quota })?.calls),
    giveBackCall: async (callerId, month) => {
      writeStatement(() => giveBack.run({ callerId, month }));
    },
    callsIn: async (callerId, month) => read(() => selectCalls.get({ callerId, month })?.calls ?? 0),
  };
}
