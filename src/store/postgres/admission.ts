import { sha256 } from '../../domain/sha256.ts';
import {
  type ClaimedKey,
  claimedKey,
  type RequestParts,
  replacedOutcome,
  resultOfClaim,
} from '../engine/requests.ts';
import {
  type Admission,
  idempotencyRetentionS,
  type NonceClaim,
  nonceRetentionS,
  type QuotaClaim,
} from '../store.ts';
import { insertRows } from './insert-rows.ts';
import type { Queries } from './leaf-rows.ts';
import { all } from './needed.ts';

/** Expired rows that are deleted for each claim of a batch: more than one, so that they cannot pile up. */
const sweptWithEach = 2;

/** As `createAdmission` makes it. */
export type PostgresAdmission = ReturnType<typeof createAdmission>;

/**
 * Admits the requests of a batch. `read` claims their nonces and reads their keys and quotas in one round trip, the functions of
 * `parts` decide by that, and `flush` sends what was decided.
 */
export function createAdmission(queries: Queries) {
  const nonces = createNonces(queries);
  const keys = createKeys(queries);
  const quotas = createQuotas(queries);
  const each = [nonces, keys, quotas];
  return {
    parts: {
      spendNonce: nonces.spend,
      keys: keys.parts,
      quotas: quotas.parts,
    } satisfies Partial<RequestParts>,
    read: (admissions: readonly Admission[]): readonly Promise<void>[] =>
      each.flatMap((one) => one.read(admissions)),
    flush: (): readonly Promise<unknown>[] => each.flatMap((one) => one.flush()),
    end: (): void => {
      for (const one of each) one.end();
    },
    /** Sends the counts of calls, for a command that reads them in the table. */
    flushCalls: quotas.flush,
    load: nonces.load,
    committed: nonces.committed,
    rolledBack: nonces.rolledBack,
    countNonces: nonces.count,
  };
}

function createNonces(queries: Queries) {
  /** The fingerprints of the nonces of this batch. */
  const fingerprints = new Map<NonceClaim, string>();
  /** Whether nonces that were claimed for this batch are new to the table, by their fingerprints. Spent ones are removed. */
  const claimed = new Map<string, boolean>();
  /** All nonces that were spent before this time, Unix seconds, are deleted. */
  let sweptTo = 0;
  let sweepAtS = 0;
  /** How many nonces this batch spends. */
  let spent = 0;
  /** The number of nonces in the table, with and without this transaction. */
  let count = 0;
  let durableCount = 0;

  async function claim(wanted: ReadonlyMap<string, number>): Promise<void> {
    const { rows } = await queries.query<{ fingerprint: string; isNew: boolean }>({
      ...claimNonces,
      values: [[...wanted.keys()], [...wanted.values()]],
    });
    for (const { fingerprint, isNew } of rows) claimed.set(fingerprint, isNew);
  }

  async function sweep(): Promise<void> {
    const beforeS = sweepAtS - 2 * nonceRetentionS;
    const { rows } = await queries.query<{ to: number | null; gone: number }>({
      ...deleteNonces,
      values: [sweptTo, beforeS, spent * sweptWithEach],
    });
    sweptTo = rows[0]?.to ?? sweptTo;
    count -= rows[0]?.gone ?? 0;
  }

  return {
    spend: (claim: NonceClaim, _: number, at: number): boolean => {
      const fingerprint = fingerprints.get(claim) ?? '';
      const isNew = claimed.get(fingerprint);
      if (isNew === undefined) return false;
      claimed.delete(fingerprint);
      if (isNew) count += 1;
      spent += 1;
      sweepAtS = at;
      return true;
    },
    read: (admissions: readonly Admission[]): Promise<void>[] => {
      const wanted = new Map<string, number>();
      for (const { nonce, nowS } of admissions) {
        if (nonce === undefined) continue;
        const fingerprint = fingerprintOf(nonce.keyId, nonce.nonce);
        fingerprints.set(nonce, fingerprint);
        if (!wanted.has(fingerprint)) wanted.set(fingerprint, nowS);
      }
      return wanted.size === 0 ? [] : [claim(wanted)];
    },
    flush: (): Promise<unknown>[] => {
      // Of requests that this batch did not execute in the end.
      const unused = [...claimed.keys()];
      for (const isNew of claimed.values()) if (!isNew) count -= 1;
      const released =
        unused.length === 0
          ? []
          : [queries.query('DELETE FROM nonce WHERE fingerprint = ANY($1::bigint[])', [unused])];
      return spent === 0 ? released : [...released, sweep()];
    },
    end: (): void => {
      fingerprints.clear();
      claimed.clear();
      spent = 0;
    },
    load: async (): Promise<void> => {
      const { rows } = await queries.query<{ n: number }>('SELECT count(*) AS n FROM nonce');
      count = durableCount = rows[0]?.n ?? 0;
    },
    committed: (): void => {
      durableCount = count;
    },
    rolledBack: (): void => {
      count = durableCount;
    },
    count: (): number => durableCount,
  };
}

/**
 * The first 64 bits of the SHA-256 of the key and the nonce, as a signed integer. With 10 million nonces, a new one has the
 * fingerprint of another once in 10^12 calls, and is then rejected as spent. Nobody can aim at that.
 */
export const fingerprintOf = (keyId: number, nonce: string): string =>
  sha256(`${keyId} ${nonce}`).readBigInt64LE(0).toString();

/** A nonce that was spent long enough ago can be spent again. In the order of the index, so that two batches cannot block each other. */
const claimNonces = {
  name: 'claim nonces',
  text: `INSERT INTO nonce (fingerprint, at_s)
    SELECT * FROM unnest($1::bigint[], $2::bigint[]) AS given (fingerprint, at_s) ORDER BY fingerprint
    ON CONFLICT (fingerprint) DO UPDATE SET at_s = excluded.at_s
      WHERE abs(nonce.at_s - excluded.at_s) >= ${nonceRetentionS}
    RETURNING fingerprint::text, xmax = 0 AS "isNew"`,
};

const deleteNonces = {
  name: 'delete nonces',
  text: `WITH expired AS (
      SELECT fingerprint FROM nonce WHERE at_s >= $1 AND at_s < $2 ORDER BY at_s LIMIT $3
      FOR UPDATE SKIP LOCKED
    ), gone AS (
      DELETE FROM nonce USING expired WHERE nonce.fingerprint = expired.fingerprint RETURNING at_s
    )
    SELECT max(at_s) AS to, count(*) AS gone FROM gone`,
};

function createKeys(queries: Queries) {
  const known = new Map<string, ClaimedKey>();
  const kept = new Map<string, ClaimedKey>();
  const replaced: { readonly callerId: number; readonly key: string; readonly outcome: Buffer }[] = [];
  let forgottenS = 0;
  let claims = 0;

  async function select(callerIds: readonly number[], keys: readonly string[]): Promise<void> {
    const { rows } = await queries.query<ClaimedKey>({ ...selectKeys, values: [callerIds, keys] });
    for (const row of rows) known.set(nameOf(row), row);
  }

  const parts: RequestParts['keys'] = {
    find: (claim, sweepAtS) => {
      const row = known.get(nameOf(claim));
      const isForgotten = row === undefined || row.claimedAtS <= sweepAtS - idempotencyRetentionS;
      return isForgotten ? undefined : resultOfClaim(row, claim);
    },
    keep: (claim, nowS, kind, outcome) => {
      const row = claimedKey(claim, nowS, kind, outcome);
      if (row === undefined) return;
      known.set(nameOf(row), row);
      kept.set(nameOf(row), row);
    },
    replace: ({ callerId, key }, result) => {
      const outcome = replacedOutcome(result);
      if (outcome === undefined) return;
      replaced.push({ callerId, key, outcome });
      const row = known.get(nameOf({ callerId, key }));
      if (row !== undefined) known.set(nameOf(row), { ...row, outcome });
    },
  };

  return {
    parts,
    read: (admissions: readonly Admission[]): Promise<void>[] => {
      const wanted = admissions.flatMap(({ idempotency }) => idempotency ?? []);
      claims = wanted.length;
      const last = admissions.findLast(({ idempotency }) => idempotency !== undefined);
      if (last === undefined) return [];
      forgottenS = (last.sweepAtS ?? last.nowS) - idempotencyRetentionS;
      return [
        select(
          wanted.map(({ callerId }) => callerId),
          wanted.map(({ key }) => key),
        ),
      ];
    },
    flush: (): Promise<unknown>[] => [
      ...insertRows(queries, 'idempotency_key', [...kept.values()], replaceForgotten),
      ...replaced.map(({ callerId, key, outcome }) =>
        queries.query({ ...replaceOutcome, values: [callerId, key, outcome] }),
      ),
      ...(claims === 0
        ? []
        : [queries.query({ ...deleteKeys, values: [forgottenS, claims * sweptWithEach] })]),
    ],
    end: (): void => {
      known.clear();
      kept.clear();
      replaced.length = 0;
      claims = 0;
    },
  };
}

const nameOf = ({ callerId, key }: { readonly callerId: number; readonly key: string }): string =>
  `${callerId} ${key}`;

const selectKeys = {
  name: 'select keys',
  text: `SELECT caller_id AS "callerId", key, fingerprint, claimed_at_s AS "claimedAtS",
      instruction_id AS "instructionId", outcome, request_id AS "requestId"
    FROM idempotency_key JOIN unnest($1::bigint[], $2::text[]) AS given (caller_id, key) USING (caller_id, key)`,
};

/** What was found was forgotten: otherwise the call would be a replay. */
const replaceForgotten = `ON CONFLICT (caller_id, key) DO UPDATE SET fingerprint = excluded.fingerprint,
  claimed_at_s = excluded.claimed_at_s, instruction_id = excluded.instruction_id, outcome = excluded.outcome,
  request_id = excluded.request_id`;

const replaceOutcome = {
  name: 'replace outcome',
  text: 'UPDATE idempotency_key SET outcome = $3 WHERE caller_id = $1 AND key = $2',
};

const deleteKeys = {
  name: 'delete keys',
  text: `DELETE FROM idempotency_key WHERE (caller_id, key) IN (
    SELECT caller_id, key FROM idempotency_key WHERE claimed_at_s <= $1 ORDER BY claimed_at_s LIMIT $2)`,
};

/** Counts calls. A batch has the counts of its callers for itself until it ends, so that they are exact over all instances. */
function createQuotas(queries: Queries) {
  /** The calls of a caller and month. */
  const usages = new Map<string, Usage>();
  /** Of which this batch counted some. */
  const counted = new Set<Usage>();

  async function select(claims: readonly QuotaClaim[]): Promise<void> {
    const callerIds = claims.map(({ callerId }) => callerId);
    const months = claims.map(({ month }) => month);
    const locked = queries.query({ ...lockUsage, values: [callerIds, months] });
    const found = queries.query<{ calls: number | null }>({ ...selectUsage, values: [callerIds, months] });
    await all([locked, found]);
    for (const [place, { calls }] of (await found).rows.entries()) {
      const { callerId, month } = claims[place] as QuotaClaim;
      usages.set(usageOf({ callerId, month }), { callerId, month, calls: calls ?? 0, stored: calls ?? 0 });
    }
  }

  const parts: RequestParts['quotas'] = {
    take: ({ limit = Number.POSITIVE_INFINITY, ...claim }) => {
      const usage = usages.get(usageOf(claim));
      if (usage === undefined) throw new Error('The quota was not read.');
      if (usage.calls + 1 > limit) return undefined;
      usage.calls += 1;
      counted.add(usage);
      return usage.calls;
    },
    counted: (claim) => usages.get(usageOf(claim))?.calls ?? 0,
  };

  return {
    parts,
    read: (admissions: readonly Admission[]): Promise<void>[] => {
      const wanted = new Map(admissions.flatMap(({ quota }) => (quota ? [[usageOf(quota), quota]] : [])));
      // In order, so that two batches cannot block each other.
      const claims = [...wanted].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, quota]) => quota);
      return claims.length === 0 ? [] : [select(claims)];
    },
    flush: (): readonly Promise<unknown>[] => {
      if (counted.size === 0) return [];
      const changed = [...counted];
      const values = [
        changed.map(({ callerId }) => callerId),
        changed.map(({ month }) => month),
        changed.map(({ stored }) => stored),
        changed.map(({ calls }) => calls),
      ];
      for (const usage of changed) usage.stored = usage.calls;
      counted.clear();
      return [queries.query({ ...replaceUsage, values })];
    },
    end: (): void => {
      usages.clear();
      counted.clear();
    },
  };
}

/** The calls of a caller in a month. */
interface Usage {
  readonly callerId: number;
  readonly month: string;
  calls: number;
  /** As many as the table has. */
  stored: number;
}

const usageOf = ({ callerId, month }: { readonly callerId: number; readonly month: string }): string =>
  `${callerId} ${month}`;

const lockUsage = {
  name: 'lock usage',
  text: `SELECT count(pg_advisory_xact_lock(hashtextextended('usage ' || caller_id || ' ' || month, 0)))
    FROM unnest($1::bigint[], $2::text[]) AS given (caller_id, month)`,
};

const selectUsage = {
  name: 'select usage',
  text: `SELECT (
      SELECT calls FROM usage
      WHERE usage.caller_id = given.caller_id AND usage.month = given.month
      ORDER BY calls DESC LIMIT 1
    ) AS calls
    FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS given (caller_id, month, place) ORDER BY place`,
};

const replaceUsage = {
  name: 'replace usage',
  text: `WITH given AS (
      SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[]) AS given (caller_id, month, stored, calls)
    ), gone AS (
      DELETE FROM usage USING given
      WHERE usage.caller_id = given.caller_id AND usage.month = given.month AND usage.calls = given.stored
    )
    INSERT INTO usage (caller_id, month, calls) SELECT caller_id, month, calls FROM given`,
};
