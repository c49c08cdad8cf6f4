import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import type { Reply } from '../../src/store/engine/failure.ts';
import { openCore } from '../../src/store/sqlite/core.ts';
import type { Command, StoreRequest } from '../../src/store/store.ts';
import { tester } from '../support/audit-log.ts';
import { countNonces } from '../support/nonces.ts';
import { statementPrototype } from '../support/statement.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { aroundCommit, commitsIn } from './commits.ts';
import {
  anyFiling,
  crashCopy,
  firstPage,
  newKey,
  newRegistration,
  nowS,
  ofNobody,
  painting,
  sandbox,
  toFile,
  toOpen,
  underKey,
  workOf,
} from './promises/fixtures.ts';
import { openRaw } from './raw-database.ts';

const month = '2026-11';
const by = { callerId: 1, caller: 'gallery' };
const page = firstPage();
const platform = { name: 'gallery', tier: 'ENTERPRISE', monthlyQuota: undefined } as const;

const file: StoreRequest = { effect: toFile(by) };
const list: StoreRequest = { effect: { kind: 'ListFilings', filter: anyFiling, page } };

/** A call with a nonce, which is counted. */
const admitted = (nonce: string, effect?: Command, of = month): StoreRequest => ({
  admission: {
    nowS,
    nonce: { keyId: 1, nonce },
    quota: { callerId: 1, month: of, limit: undefined, take: true },
  },
  effect,
});

/** A reply in a word: the number of a filing, the reason of a rejection, or the failure. */
function wordOf(reply: Reply | undefined): string {
  assert.ok(reply);
  if ('failure' in reply) return reply.failure.isUnavailable ? 'UNAVAILABLE' : 'failed';
  const { outcome } = reply;
  if (outcome.kind === 'NOT_ADMITTED') return outcome.why;
  if (outcome.kind === 'REJECTED') return outcome.apiError.reason;
  const { result } = outcome;
  if (typeof result !== 'object') return String(result);
  if ('items' in result) return `${result.items.length} listed`;
  return 'filingNo' in result ? result.filingNo : 'done';
}

/** A core with the platform of key and caller 1, and its connection, whose limits the test can set. */
async function openWithClient(t: TestContext) {
  const dataDir = temporaryFolder(t);
  const { pragma } = Sqlite.prototype;
  const connections = new Set<Sqlite.Database>();
  const opening = t.mock.method(Sqlite.prototype, 'pragma', function (this: Sqlite.Database, ...words) {
    connections.add(this);
    return pragma.apply(this, words);
  } satisfies typeof pragma);
  const core = openCore({ dataDir, ...sandbox });
  opening.mock.restore();
  t.after(() => core.close());
  const [client] = connections;
  assert.ok(client !== undefined && connections.size === 1);
  await core.executeBatch([{ effect: { kind: 'AddPlatform', by: tester, platform, key: newKey() } }]);
  const raw = openRaw(t, dataDir);
  return {
    core,
    client,
    dataDir,
    raw,
    /** Executes a batch; its replies in a word each. */
    batch: async (...requests: readonly StoreRequest[]) => (await core.executeBatch(requests)).map(wordOf),
    /** Lets the database grow by so many pages at most. */
    allowPages: (more: number) => {
      const pages = Number(client.pragma('page_count', { simple: true }));
      client.pragma(`max_page_count = ${pages + more}`);
    },
    rows: (table: string) => raw.prepare(`SELECT count(*) FROM ${table}`).pluck().get(),
    /** The first words of all events: caller, sequence, position of the caller's previous event, type. */
    events: () => {
      const lines = raw.prepare<[], string>('SELECT lines FROM event_log ORDER BY id').pluck().all();
      return lines.flatMap((shared) => shared.split('\n')).map((line) => line.split(' ', 4).join(' '));
    },
    walBytes: () => statSync(`${client.name}-wal`).size,
    calls: () => raw.prepare('SELECT coalesce(sum(calls), 0) FROM usage').pluck().get(),
  };
}

test('a batch is one commit, and each request sees the ones before it', async (t) => {
  const { batch, dataDir } = await openWithClient(t);
  const before = commitsIn(dataDir);
  assert.deepEqual(await batch(file, list, admitted('n', toFile(by)), list, admitted('n', toFile(by))), [
    'AS-2026-000001',
    '1 listed',
    'AS-2026-000002',
    '2 listed',
    'NONCE_REUSED',
  ]);
  assert.equal(commitsIn(dataDir), before + 1);
});

test('a form costs a commit, also for an address that is known', async (t) => {
  const { batch, dataDir } = await openWithClient(t);
  for (const email of ['one@example.com', 'ONE@example.com']) {
    const before = commitsIn(dataDir);
    const taken = { kind: 'TakeForm', atS: nowS, max: 9, registration: newRegistration(email) } as const;
    assert.deepEqual(await batch({ effect: taken }), ['true']);
    assert.equal(commitsIn(dataDir), before + 1, email);
  }
});

test('a batch is on disk when its replies are sent, and nothing of it before its commit', async (t) => {
  const { batch, dataDir } = await openWithClient(t);
  let before = '';
  aroundCommit(t, {
    before: () => {
      before = crashCopy(t, dataDir);
    },
  });
  await batch(file, admitted('n', toFile(by)));
  const after = crashCopy(t, dataDir);
  assert.ok(before, 'the batch was committed');
  const leftIn = async (folder: string) => {
    const core = openCore({ dataDir: folder, ...sandbox });
    t.after(() => core.close());
    return (await core.executeBatch([list, admitted('n')])).map(wordOf);
  };
  assert.deepEqual(await leftIn(before), ['0 listed', 'undefined']);
  assert.deepEqual(await leftIn(after), ['2 listed', 'NONCE_REUSED']);
});

test('the calls of a batch are counted in their months with one write each', async (t) => {
  const { batch, client, raw } = await openWithClient(t);
  const counted = () => raw.prepare('SELECT month, calls FROM usage ORDER BY month').raw().all();
  await batch(admitted('a'), admitted('b'), admitted('c'));
  assert.deepEqual(counted(), [[month, 3]]);
  const writes: string[] = [];
  client.function('note_write', (row) => void writes.push(String(row)));
  client.exec('CREATE TEMP TRIGGER noted AFTER UPDATE ON usage BEGIN SELECT note_write(NEW.month); END');
  await batch(admitted('d'), admitted('e'), admitted('f', undefined, '2026-12'), admitted('g'));
  assert.deepEqual(counted(), [
    [month, 6],
    ['2026-12', 1],
  ]);
  // November is written before December is counted, and again at the end.
  assert.deepEqual(writes, [month, month]);
});

test('a call whose commit fails is neither counted nor has it spent its nonce', async (t) => {
  const { core } = await openWithClient(t);
  const call = async () => (await core.executeBatch([admitted('n')]))[0];
  aroundCommit(t, {
    before: () => {
      throw Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' });
    },
  });
  assert.ok('failure' in ((await call()) ?? {}));
  const done = { kind: 'DONE', result: undefined, isReplay: false };
  assert.deepEqual(await call(), { outcome: done, calls: 1 });
});

/** Commands that fail in their last change with an internal error, by the access of their handlers. */
const failing: Readonly<Record<string, (instructionId: string) => Command>> = {
  'write without a savepoint': () => ofNobody,
  // The name of its instruction is taken.
  'write with a savepoint': (instructionId) =>
    toOpen(by, 'AS-2026-000002', { work: { ...workOf(by), instructionId } }),
};

for (const [access, fails] of Object.entries(failing)) {
  test(`a ${access} that fails in its last change leaves its admission alone, and the others are executed`, async (t) => {
    const { core, batch, dataDir, rows, raw, calls } = await openWithClient(t);
    const first = toOpen(by, 'AS-2026-000001');
    await batch(file, file, { effect: first });
    const before = commitsIn(dataDir);
    const effect = fails(first.work.instructionId);
    const { idempotency } = underKey(1, 'k', effect).admission ?? {};
    const failed = { admission: { nowS, ...admitted('n').admission, idempotency }, effect };
    assert.deepEqual(await batch(file, failed, failed, file, list), [
      'AS-2026-000003',
      'failed',
      'NONCE_REUSED',
      'AS-2026-000004',
      '4 listed',
    ]);
    assert.equal(commitsIn(dataDir), before + 1);
    assert.equal(calls(), 1);
    assert.deepEqual(
      ['filing', 'escrow', 'escrow_instruction', 'escrow_change', 'idempotency_key'].map(rows),
      [4, 1, 1, 1, 0],
    );
    const last = raw.prepare('SELECT last FROM number_sequence').pluck().all();
    assert.deepEqual(last, [1], 'no number is used');
    const [reply] = await core.executeBatch([{ effect: fails(first.work.instructionId) }]);
    assert.match(reply && 'failure' in reply ? (reply.failure.cause ?? '') : '', /constraint failed/);
  });
}

/** The events of so many filings of caller 1. */
const filed = (count: number) =>
  Array.from({ length: count }, (_, place) => `1 ${place + 1} ${place} filing.created`);

test('a request whose idempotency row cannot be read fails alone, and leaves nothing', async (t) => {
  const { batch, raw, calls, events } = await openWithClient(t);
  const keyed = underKey(1, 'k', toFile(by));
  await batch(keyed);
  raw.exec("UPDATE idempotency_key SET outcome = x'00'");
  const { nonce } = admitted('n').admission ?? {};
  const broken = { ...keyed, admission: { nowS, ...keyed.admission, nonce } };
  assert.deepEqual(await batch(file, broken, admitted('m', toFile(by)), list), [
    'AS-2026-000002',
    'failed',
    'AS-2026-000003',
    '3 listed',
  ]);
  assert.deepEqual([countNonces(raw), calls()], [1, 1]);
  assert.deepEqual(events(), filed(3), 'each filing has one event');
  assert.deepEqual(await batch(admitted('n')), ['undefined'], 'its nonce is not spent');
});

test('only the request that makes the commit fail fails', async (t) => {
  const { batch, raw, rows, events } = await openWithClient(t);
  // Only the commit rejects a child without its parent.
  raw.exec(`CREATE TABLE parent (id INTEGER PRIMARY KEY);
    CREATE TABLE child (parent INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
    CREATE TRIGGER orphan AFTER INSERT ON escrow BEGIN INSERT INTO child VALUES (1); END;`);
  const opening = underKey(by.callerId, 'k', toOpen(by, 'AS-2026-000001'));
  assert.deepEqual(await batch(file, opening, list, file), [
    'AS-2026-000001',
    'failed',
    '1 listed',
    'AS-2026-000002',
  ]);
  const tables = ['escrow', 'escrow_instruction', 'escrow_change', 'number_sequence', 'idempotency_key'];
  assert.deepEqual(tables.map(rows), [0, 0, 0, 0, 0]);
  assert.deepEqual(events(), filed(2), 'their sequences have no gap');
  raw.exec('DROP TRIGGER orphan');
  assert.deepEqual(await batch(opening), ['done']);
});

test('a batch on a full disk leaves nothing, reads still work, and writes work again once there is space', async (t) => {
  const { core, batch, allowPages, rows } = await openWithClient(t);
  const big: StoreRequest = {
    effect: { ...toFile(by), artwork: { ...painting, condition: 'x'.repeat(2_000) } },
  };
  allowPages(2);
  let kept = 0;
  for (let full = false; !full; ) {
    const replies = await batch(big, list, big, big);
    full = replies.includes('UNAVAILABLE');
    if (full) assert.deepEqual(replies, ['UNAVAILABLE', `${kept} listed`, 'UNAVAILABLE', 'UNAVAILABLE']);
    else kept += 3;
    assert.equal(rows('filing'), kept);
  }
  const [reply] = await core.executeBatch([big, big, big]);
  assert.partialDeepStrictEqual(reply, {
    failure: {
      message: 'The store could not keep the write; nothing was stored.',
      cause: 'database or disk is full',
    },
  });
  allowPages(1_000);
  assert.deepEqual(await batch(big), [`AS-2026-00000${kept + 1}`]);
});

test('a command of an operator on a full disk gets UNAVAILABLE, without the values of its query', async (t) => {
  const { core, allowPages } = await openWithClient(t);
  allowPages(1);
  let failure: object | undefined;
  for (let added = 0; failure === undefined; added += 1) {
    const named = { ...platform, name: `gallery ${added}` };
    const command = { kind: 'AddPlatform', by: tester, platform: named, key: newKey() } as const;
    const [reply] = await core.executeBatch([{ effect: command }]);
    if (reply !== undefined && 'failure' in reply) ({ failure } = reply);
  }
  assert.partialDeepStrictEqual(failure, { isUnavailable: true, cause: 'database or disk is full' });
});

test('a nonce is not spent if its claim fails on a full disk, and stays spent otherwise', async (t) => {
  const { batch, allowPages, raw, calls } = await openWithClient(t);
  const turnOf = (place: number) =>
    Array.from({ length: 50 }, (_, each) => admitted(`${'n'.repeat(50)} ${place} ${each}`));
  allowPages(2);
  let kept = 0;
  while ((await batch(...turnOf(kept))).every((word) => word === 'undefined')) kept += 1;
  assert.ok(kept > 0, 'a turn was stored');
  assert.deepEqual([countNonces(raw), calls()], [50 * kept, 50 * kept]);
  allowPages(1_000);
  assert.ok((await batch(...turnOf(0))).every((word) => word === 'NONCE_REUSED'));
  assert.ok((await batch(...turnOf(kept))).every((word) => word === 'undefined'));
});

test('a batch ends once its replies are long, and later requests are not executed', async (t) => {
  const { core } = await openWithClient(t);
  const filing = toFile(by);
  const condition = 'x'.repeat(1_650);
  const long: StoreRequest = { effect: { ...filing, artwork: { ...filing.artwork, condition } } };
  await core.executeBatch(Array.from({ length: 100 }, () => long));
  const replies = await core.executeBatch([list, list, list, list, list, file]);
  assert.deepEqual(replies.map(wordOf), ['100 listed', '100 listed', '100 listed']);
  assert.deepEqual((await core.executeBatch([file])).map(wordOf), ['AS-2026-000101']);
});

test('keys that cannot be read are read later, and requests get their replies', async (t) => {
  const { core } = await openWithClient(t);
  assert.deepEqual(core.changedCredentials()?.keys.length, 1);
  const unreadable = t.mock.method(statementPrototype, 'all', () => {
    throw new Sqlite.SqliteError('disk I/O error', 'SQLITE_IOERR');
  });
  const key = newKey();
  const second = { ...platform, name: 'second' };
  const [added] = await core.executeBatch([
    { effect: { kind: 'AddPlatform', by: tester, platform: second, key } },
  ]);
  assert.equal(wordOf(added), 'done');
  assert.equal(core.changedCredentials(), undefined);
  unreadable.mock.restore();
  assert.equal(core.changedCredentials()?.keys.at(-1)?.apiKey, key.apiKey);
  assert.equal(core.changedCredentials(), undefined);
});

test('a read, or a rejected command without admission, writes no commit', async (t) => {
  const { batch, walBytes } = await openWithClient(t);
  const before = walBytes();
  const refused = { kind: 'SetKeyStatus', by: tester, keyId: 'no key', status: 'SUSPENDED' } as const;
  assert.deepEqual(await batch(list, { effect: refused }), ['0 listed', 'NOT_FOUND']);
  assert.equal(walBytes(), before);
});

test('RewriteNothing writes one page to the log, and leaves the database as it was', async (t) => {
  const { batch, raw, walBytes } = await openWithClient(t);
  const before = walBytes();
  await batch({ effect: { kind: 'RewriteNothing' } });
  assert.equal(walBytes() - before, 4_096 + 24, 'one page with its header');
  assert.ok(Number(raw.pragma('user_version', { simple: true })) > 0);
  assert.equal(raw.pragma('integrity_check', { simple: true }), 'ok');
});
