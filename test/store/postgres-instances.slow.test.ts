import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { openPostgresStore } from '../../src/store/postgres/store.ts';
import { takeFence } from '../../src/store/postgres/transactions.ts';
import { perform, type Store } from '../../src/store/store.ts';
import { tester } from '../support/audit-log.ts';
import { eventually } from '../support/eventually.ts';
import { runSql, skipUnlessPostgres } from '../support/postgres.ts';
import { startInstance } from './child-instance.ts';
import { openDatabase } from './postgres-stores.ts';
import { addPlatform, anyFiling, sandbox, toFile } from './promises/fixtures.ts';

const skip = skipUnlessPostgres();
const kills = Number(process.env.ARTSEAL_TEST_KILLS ?? 5);
const by = { callerId: 1, caller: 'gallery' };
/** Long enough for a machine that does much else. */
const limitMs = 60_000;

/** Two instances of a database with a platform. */
async function openTwo(t: TestContext) {
  const { url, openAs } = await openDatabase(t);
  const both = [await openAs('a'), await openAs('b')] as const;
  return { url, openAs, both };
}

/** Files so many at each of two instances at once. Returns the numbers, and the errors. */
async function fileAtBoth(both: readonly Store[], count: number) {
  const errors: unknown[] = [];
  const numbers: string[] = [];
  const work = async (store: Store) => {
    for (let nth = 0; nth < count / 64; nth += 1) {
      try {
        const { outcome } = await store.execute({ effect: toFile(by) });
        if (outcome.kind === 'DONE') numbers.push(outcome.result.filingNo);
        else errors.push(outcome);
      } catch (error) {
        errors.push(error);
      }
    }
  };
  await Promise.all(both.flatMap((store) => Array.from({ length: 64 }, () => work(store))));
  return { numbers, errors };
}

/** What is stored of filings: their count, and the last number, leaf, sequence and position, which are equal without gaps. */
async function stored(url: string) {
  const [row] = await runSql<{ count: string; ends: string[] }>(
    url,
    `SELECT (SELECT count(*) FROM filing) AS count, ARRAY[
      (SELECT max(substr(filing_no, 9)::bigint) FROM filing), (SELECT count(DISTINCT leaf_index) FROM filing),
      (SELECT max(id) FROM log_leaf), (SELECT max(sequence) FROM event), (SELECT max(position) FROM event)] AS ends`,
  );
  return { count: Number(row?.count), ends: row?.ends.map(Number) };
}

/** Reads what records, leaves and events are, which fails if they do not agree. */
async function assertSound(url: string, store: Store, answered: readonly string[]): Promise<void> {
  const { count, ends } = await stored(url);
  assert.deepEqual(ends, Array(5).fill(count));
  const rows = await runSql<{ filing_no: string }>(url, 'SELECT filing_no FROM filing');
  const all = new Set(rows.map(({ filing_no }) => filing_no));
  assert.deepEqual(
    answered.filter((number) => !all.has(number)),
    [],
  );
  assert.equal(new Set(answered).size, answered.length);
  const { verified, size, faults } = await perform(store, { kind: 'VerifyLog', leaves: 1_000_000 });
  assert.deepEqual([verified, faults.count], [size, 0]);
  await perform(store, { kind: 'ListFilings', filter: anyFiling, page: { from: undefined, size: 100 } });
}

test('two instances file at once, and numbers, leaves and events have no gap', { skip }, async (t) => {
  const { url, both } = await openTwo(t);
  const { numbers, errors } = await fileAtBoth(both, 4_096);
  assert.deepEqual(errors, []);
  assert.equal(numbers.length, 2 * 4_096);
  for (const store of both) await assertSound(url, store, numbers);
});

test('without the fence, filings at two instances are in each other’s way', { skip }, async (t) => {
  const { text } = takeFence;
  takeFence.text = 'SELECT 1';
  t.after(() => {
    takeFence.text = text;
  });
  const { both } = await openTwo(t);
  assert.notDeepEqual((await fileAtBoth(both, 1_024)).errors, []);
});

test('what one instance files, the other returns', { skip }, async (t) => {
  const { both } = await openTwo(t);
  for (let nth = 0; nth < 200; nth += 1) {
    const [one, other] = nth % 2 === 0 ? both : [both[1], both[0]];
    const { filingNo } = await perform(one, toFile(by));
    assert.equal((await perform(other, { kind: 'GetFiling', filingNo, owner: 1 }))?.filingNo, filingNo);
  }
});

test('a quota is exact over two instances, and its events are sent once', { skip }, async (t) => {
  const { url, both } = await openTwo(t);
  const quota = { callerId: 1, month: '2026-11', limit: 400, take: true };
  const calls = Array.from({ length: 1_000 }, (_, nth) =>
    (both[nth % 2] ?? both[0]).execute({
      admission: { nowS: 1_800_000_000, quota },
      effect: { kind: 'GetFiling', filingNo: 'AS-2026-000001', owner: 1 },
    }),
  );
  const kinds = (await Promise.all(calls)).map(({ outcome }) => outcome.kind);
  assert.equal(kinds.filter((kind) => kind === 'DONE').length, 400);
  const events = await runSql(
    url,
    "SELECT sequence, percent FROM event WHERE type = 'usage.threshold' ORDER BY 1",
  );
  assert.deepEqual(events, [
    { sequence: '1', percent: '80' },
    { sequence: '2', percent: '100' },
  ]);
});

test('each of 10,000 nonces that are sent to both instances at once passes once', { skip }, async (t) => {
  const { both } = await openTwo(t);
  const sent = Array.from({ length: 10_000 }, (_, nth) => {
    const admission = { nowS: 1_800_000_000, nonce: { keyId: 1, nonce: `${nth}` } };
    return both.map((store) => store.execute({ admission }));
  });
  const kinds = (await Promise.all(sent.flat())).map(({ outcome }) => outcome.kind);
  assert.equal(kinds.filter((kind) => kind === 'DONE').length, 10_000);
});

test('an idempotency key at both instances at once has one effect', { skip }, async (t) => {
  const { url, both } = await openTwo(t);
  const sent = Array.from({ length: 500 }, (_, nth) => {
    const idempotency = { callerId: 1, key: `${nth}`, fingerprint: Buffer.from('f'), requestId: 'r' };
    return both.map((store) =>
      store.execute({ admission: { nowS: 1_800_000_000, idempotency }, effect: toFile(by) }),
    );
  });
  for (const replies of await Promise.all(sent.map((pair) => Promise.all(pair)))) {
    const [one, other] = replies.map(({ outcome }) => outcome.kind === 'DONE' && outcome);
    assert.ok(one && other);
    assert.deepEqual([one.result, one.isReplay], [other.result, !other.isReplay]);
  }
  assert.equal((await stored(url)).count, 500);
});

test('the filing cap of a platform holds over two instances', { skip }, async (t) => {
  const { url, both } = await openTwo(t);
  const cap = { filings: 100, endsInS: 1 };
  const filed = Array.from({ length: 400 }, (_, nth) =>
    (both[nth % 2] ?? both[0]).execute({ effect: { ...toFile(by), cap } }),
  );
  await Promise.all(filed);
  assert.equal((await stored(url)).count, 100);
});

test('a change of credentials and an event reach the other instance, which does nothing else', {
  skip,
}, async (t) => {
  const { both } = await openTwo(t);
  const [one, other] = both;
  const notified: number[] = [];
  other.onEvents((callerIds) => notified.push(...callerIds));
  const key = await addPlatform(one, 'second');
  await eventually('the new key', limitMs, () => other.findKey(key.apiKey) !== undefined);
  await perform(one, { kind: 'SetKeyStatus', by: tester, keyId: key.keyId, status: 'REVOKED' });
  await eventually('the revocation', limitMs, () => other.findKey(key.apiKey)?.status === 'REVOKED');
  await perform(one, toFile(by));
  await eventually('the event', limitMs, () => notified.includes(1));
});

async function kill(child: ChildProcess): Promise<void> {
  const closed = once(child, 'close');
  child.kill('SIGKILL');
  await closed;
}

/** Files one after the other. Returns the numbers, and what returns the longest pause between two of them since its last call. */
function fileWatched(store: Store) {
  const numbers: string[] = [];
  let longestMs = 0;
  let isStopped = false;
  const run = async () => {
    let lastMs = performance.now();
    while (!isStopped) {
      numbers.push((await perform(store, toFile(by))).filingNo);
      const nowMs = performance.now();
      longestMs = Math.max(longestMs, nowMs - lastMs);
      lastMs = nowMs;
    }
  };
  const running = run();
  return {
    numbers,
    takeLongestMs: () => {
      const ms = longestMs;
      longestMs = 0;
      return ms;
    },
    stop: async () => {
      isStopped = true;
      await running;
    },
  };
}

test('an instance that is killed loses nothing that it answered, and the other continues', {
  skip,
}, async (t) => {
  const { url, openAs } = await openDatabase(t);
  const store = await openAs('survivor');
  const watched = fileWatched(store);
  const answered: string[] = [];
  const pauses: number[] = [];
  let startingMs = 0;
  for (let killed = 0; killed < kills; killed += 1) {
    const { child, answered: own } = await startInstance(t, url, 32);
    await eventually('filings of the child', limitMs, () => own.length > 50);
    // The first filing of the child reads the whole log. A server reads it in slices before.
    startingMs = Math.max(startingMs, watched.takeLongestMs());
    await kill(child);
    answered.push(...own);
    const count = watched.numbers.length;
    await eventually('filings after the kill', limitMs, () => watched.numbers.length > count + 10);
    pauses.push(watched.takeLongestMs());
  }
  await watched.stop();
  const sorted = pauses.map(Math.round).sort((a, b) => b - a);
  t.diagnostic(
    `${kills} kills: longest pauses ${sorted.slice(0, 5)} ms; before the kills ${Math.round(startingMs)} ms`,
  );
  await assertSound(url, store, [...answered, ...watched.numbers]);
});

/** The session of a stopped process that has the fence. */
const fenceHolder = `SELECT pid FROM pg_locks JOIN pg_stat_activity USING (pid)
  WHERE locktype = 'advisory' AND granted AND state = 'idle in transaction' AND application_name = 'artseal'
    AND classid::bigint << 32 | objid::bigint = hashtextextended('artseal fence', 0)`;

test('an instance that is stopped with the fence does not stop the other, and continues later', {
  skip,
}, async (t) => {
  const { url, openAs } = await openDatabase(t);
  const store = await openAs('other');
  const { child, answered } = await startInstance(t, url, 32);
  const isStoppedInside = async () => {
    child.kill('SIGSTOP');
    // Two readings: between them, a session that only waited for its next statement would have gone on.
    const found = (await runSql(url, fenceHolder)).length > 0 && (await runSql(url, fenceHolder)).length > 0;
    if (!found) child.kill('SIGCONT');
    return found;
  };
  await eventually('a stop with the fence', limitMs, isStoppedInside);
  const beganMs = performance.now();
  const own = await perform(store, toFile(by));
  t.diagnostic(`paused ${Math.round(performance.now() - beganMs)} ms`);
  const count = answered.length;
  child.kill('SIGCONT');
  await eventually('filings of the child', limitMs, () => answered.length > count + 100);
  await kill(child);
  await assertSound(url, store, [...answered, own.filingNo]);
});

test('one instance leads, and another one does when it is closed, killed or stopped', { skip }, async (t) => {
  const { url, openAs } = await openDatabase(t);
  const leads = (store: Store) => store.instances?.isLeading() === true;
  const first = await openAs('first');
  await eventually('the first one leads', limitMs, () => leads(first));
  const second = await openAs('second');
  const shown = async () => {
    const rows = await perform(second, { kind: 'ListInstances' });
    return rows.map(({ facts, isLeading, isOwn }) => [facts.host, isLeading, isOwn]);
  };
  await eventually('it says so', limitMs, async () => (await shown())[0]?.[1]);
  assert.deepEqual(await shown(), [
    ['first', true, false],
    ['second', false, true],
  ]);
  await first.close();
  await eventually('the second one leads', limitMs, () => leads(second));
  await second.close();
  const { child } = await startInstance(t, url, 1);
  const leader = async () =>
    (await runSql<{ host: string }>(url, "SELECT facts ->> 'host' AS host FROM instance WHERE is_leading"))[0]
      ?.host;
  await eventually('the child leads', limitMs, async () => (await leader()) === 'child');
  const third = await openAs('third');
  child.kill('SIGSTOP');
  await eventually('the third one leads', limitMs, () => leads(third));
  child.kill('SIGCONT');
  await eventually('the child does not', limitMs, async () => {
    const rows = await perform(third, { kind: 'ListInstances' });
    return rows.some(
      ({ facts, isLeading, unseenMs }) => facts.host === 'child' && !isLeading && unseenMs < 2_000,
    );
  });
  assert.ok(leads(third));
});

test('a command that needs the database for itself is refused beside an instance, and the other way round', {
  skip,
}, async (t) => {
  const { url, openAs } = await openDatabase(t);
  const store = await openAs('a');
  const openAlone = () => openPostgresStore({ place: { url }, ...sandbox, isAlone: true });
  await assert.rejects(openAlone(), /another artseal uses the database/);
  await store.close();
  const alone = await openAlone();
  await assert.rejects(openAs('b'), /another artseal uses the database/);
  await alone.close();
});
