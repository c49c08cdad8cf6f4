import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import {
  checkLogName,
  type Disagreement,
  EvidenceLogError,
  readAgreed,
} from '../../../src/evidence/log/agreement.ts';
import { type PublishedCheckpoint, tryReadCheckpoint } from '../../../src/evidence/log/publication.ts';
import type { LogKey, LogState } from '../../../src/store/log-commands.ts';
import type { Command, ReadTree } from '../../../src/store/store.ts';
import { eventually } from '../../support/eventually.ts';
import { type FilingRow, forgeIn, leafOfFiling, rewriteTree } from '../../support/forging.ts';
import { type NoteKey, noteKey, witnessKey } from '../../support/note-keys.ts';
import { createTree, hashOfLeaf } from '../verifier/small-log.ts';
import { keptIn, type Publishing, startPublishing } from './publishing.ts';

const timeoutMs = 60_000;

const origin = 'log.example/artworks';
const key = noteKey(origin);
const tree = createTree(Array.from({ length: 9 }, (_, index) => hashOfLeaf(`leaf ${index}`)));
const noteOf = (size: number, by: NoteKey = key, root: Buffer = tree.root(size)): string =>
  by.sign(`${by.name}\n${size}\n${root.toString('base64')}\n`);
const published = (size: number): PublishedCheckpoint => tryReadCheckpoint(noteOf(size)) ?? assert.fail();
const kept = (note: string, size = 9) => ({ size, note, publishedAtS: 0 });
const good = noteOf(9);

interface Published {
  /** The note in the file; undefined if there is no file. */
  readonly note?: string | undefined;
  readonly last?: PublishedCheckpoint;
  readonly state?: Partial<LogState>;
  /** Leaves in the database. */
  readonly size?: number;
  /** The root of every tree in the database. */
  readonly root?: Buffer;
  readonly isShared?: boolean;
}

/** Compares a file with a database of nine leaves that published all of them, unless said otherwise. */
function agree({ note, last, state, size = 9, root, isShared = false }: Published) {
  const logKey: LogKey = {
    ...{ vkey: key.vkey, sealedSeed: new Uint8Array(), addedAtS: 100 },
    ...{ signsFromS: null, endsAtS: null, isRetired: false },
  };
  const names = [{ origin, firstSize: 0 }];
  const execute = (async (command: Command<'GetTree' | 'GetRoot'>) => {
    if (command.kind === 'GetTree') return { size, root: tree.root(size) };
    const own = root ?? tree.root(command.size);
    return { root: own, stored: own };
  }) as ReadTree;
  return readAgreed({
    execute,
    state: {
      ...{ origin, names, keys: [logKey], newest: kept(good) },
      ...{ forkedAfter: undefined, restoredFromS: undefined, restoredAtS: undefined, ...state },
    },
    file: {
      path: '/data/log-checkpoint',
      read: async () => (note === undefined ? undefined : { note, writtenAtMs: 0 }),
      write: () => assert.fail(),
    },
    last,
    isShared,
  });
}

const empty = { newest: undefined };
const unnamed = { origin: undefined, names: [], keys: [], newest: undefined };
const disagreements: Readonly<Record<string, readonly [Published, Disagreement, RegExp]>> = {
  'an older database': [
    { note: good, size: 5 },
    'DATABASE_BEHIND',
    /it has 5 leaves, .* has a checkpoint of 9\./,
  ],
  'a changed database': [
    { note: good, root: tree.root(8) },
    'DATABASE_CHANGED',
    /^the database does not agree .*: the tree of its first 9 leaves has the root [0-9a-f]{64}, /,
  ],
  'a database that does not continue what this process published': [
    { note: noteOf(5), state: empty, last: { ...published(5), root: tree.root(4), note: '' } },
    'DATABASE_CHANGED',
    /the tree of its first 5 leaves/,
  ],
  'the file of another log': [
    { note: noteOf(9, noteKey('log.example/other')) },
    'OTHER_LOG',
    /log-checkpoint is of the log log\.example\/other, and this database is that of log\.example\/artworks/,
  ],
  'a file beside a database that published nothing': [
    { note: good, state: unnamed },
    'OTHER_LOG',
    /with 9 leaves, and this database has published nothing/,
  ],
  'a file signed by an unknown key of the same name': [
    { note: noteOf(9, noteKey(origin)) },
    'OTHER_KEY',
    /a checkpoint of 9 leaves that is signed by no key of this database/,
  ],
  'a damaged checkpoint in the database': [
    { note: good, state: { newest: kept('none') } },
    'DATABASE_CHANGED',
    /^the checkpoint in the database is damaged: /,
  ],
  'no file': [{}, 'FILE_MISSING', /is missing, although a checkpoint of 9 leaves was published/],
  'no file while the process serves': [
    { state: empty, last: published(6) },
    'FILE_MISSING',
    /is missing, although a checkpoint of 6 leaves was published/,
  ],
  'no file, and a key from a backup': [
    { state: { ...empty, restoredFromS: 100 } },
    'FILE_MISSING',
    /restored from a backup with a key that may have signed since/,
  ],
  'a file that is older than the checkpoint in the database': [
    { note: noteOf(5) },
    'FILE_OLD',
    /a checkpoint of 5 leaves, and is not the newest one: one of 9 was published/,
  ],
  'a file that is older than what this process published': [
    { note: noteOf(5), state: empty, last: published(6) },
    'FILE_OLD',
    /one of 6 was published/,
  ],
};
const shared = { isShared: true };
const restored = { restoredFromS: 100, restoredAtS: 200 };
const byAnother = noteOf(9, noteKey(origin));
const disagreementsIfShared: typeof disagreements = {
  'a kept checkpoint of more leaves than the database has': [
    { ...shared, note: noteOf(5), size: 8 },
    'DATABASE_BEHIND',
    /it has 8 leaves, and the database keeps a checkpoint of 9\./,
  ],
  'a file of more leaves than the database has': [
    { ...shared, note: good, size: 5, state: { newest: kept(noteOf(5), 5) } },
    'DATABASE_BEHIND',
    /it has 5 leaves, .* has a checkpoint of 9\./,
  ],
  'a kept checkpoint signed by an unknown key': [
    { ...shared, note: noteOf(5), state: { newest: kept(byAnother) } },
    'DATABASE_CHANGED',
    /the checkpoint in the database is signed by no key of this log/,
  ],
  'an old file of another tree': [
    { ...shared, note: noteOf(5, key, tree.root(4)) },
    'DATABASE_CHANGED',
    /the tree of its first 5 leaves has the root/,
  ],
  'no file, and a kept checkpoint from a backup': [
    { ...shared, state: { ...restored, newest: { ...kept(good), publishedAtS: 200 } } },
    'FILE_MISSING',
    /Backups do not contain this file/,
  ],
  'an old file, and a kept checkpoint from a backup': [
    { ...shared, note: noteOf(5), state: { ...restored, newest: { ...kept(good), publishedAtS: 200 } } },
    'FILE_OLD',
    /one of 9 was published/,
  ],
};
for (const [what, [setting, kind, message]] of Object.entries({
  ...disagreements,
  ...disagreementsIfShared,
})) {
  test(`nothing is signed with ${what}`, async () => {
    await assert.rejects(agree(setting), (error) => {
      assert.ok(error instanceof EvidenceLogError, String(error));
      assert.equal(error.kind, kind);
      assert.match(error.message, message);
      assert.match(error.message, /artseal evidence fork --accept/);
      return true;
    });
  });
}

test('nothing is signed with a damaged file', async () => {
  const flipped = (at: number) =>
    good.slice(0, at) + String.fromCharCode(good.charCodeAt(at) ^ 1) + good.slice(at + 1);
  for (const note of [
    ...['', good.slice(0, -20), good.replace('\n9\n', '\n8\n'), good.replace(/\n9\n.{4}/, '\n9\nAAAA')],
    ...[flipped(good.length - 10), flipped(3), '\ufffd'.repeat(300), ' '.repeat(1_000_000)],
  ])
    await assert.rejects(agree({ note }), { message: /log-checkpoint (is damaged: |is of the log )/ });
});

test('the file may be newer than the checkpoint in the database, which is written after it', async () => {
  for (const state of [{}, empty, { newest: kept(noteOf(5), 5) }])
    assert.equal((await agree({ note: good, state }))?.size, 9);
  assert.equal((await agree({ note: good, size: 9, last: published(5), state: empty }))?.size, 9);
  assert.equal(await agree({ state: empty }), undefined, 'nothing was published');
  assert.equal(await agree({ note: good, state: { ...empty, forkedAfter: good } }), undefined, 'a new fork');
});

test('the kept checkpoint of a shared log may be newer than the file', async () => {
  for (const note of [undefined, noteOf(5), good, `${good}${witnessKey('w').cosign('', 1)}`])
    assert.equal((await agree({ ...shared, note }))?.note, good);
  assert.equal((await agree({ ...shared, note: good, state: { newest: kept(noteOf(5), 5) } }))?.size, 9);
  const published = { ...kept(good), publishedAtS: 201 };
  assert.equal((await agree({ ...shared, state: { ...restored, newest: published } }))?.size, 9);
  const names = [{ origin: 'log.example/before', firstSize: 0 }];
  const state = { names: [...names, { origin, firstSize: 5 }], forkedAfter: 'another' };
  assert.equal((await agree({ ...shared, note: noteOf(7, noteKey('log.example/before')), state }))?.size, 9);
});

test('a log keeps its name, whatever the settings say', () => {
  const state = { origin: `${origin}/2`, names: [{ origin: `${origin}/2`, firstSize: 9 }] };
  for (const set of [undefined, origin, `${origin}/2`]) checkLogName(state, set);
  assert.throws(() => checkLogName(state, 'log.example/other'), {
    kind: 'OTHER_ORIGIN',
    message: /ARTSEAL_TLOG_ORIGIN is log\.example\/other, .* published as log\.example\/artworks\/2/,
  });
});

const databaseIn = (dataDir: string) => join(dataDir, 'artseal.db');

/**
 * Forges the first filing of a data folder as one would who has the database to themselves: drops the triggers, gives it
 * another author and puts it back by a day, recomputes its hash, its leaf and all hashes of the log, and puts the triggers
 * back.
 */
function forge(dataDir: string): void {
  forgeIn(databaseIn(dataDir), (client) => {
    client.exec(
      `UPDATE filing SET author = 'Zhang Daqian', filed_at_s = filed_at_s - 86400,
         timestamp = replace(timestamp, substr(timestamp, 1, 10), date(filed_at_s - 86400, 'unixepoch'))
       WHERE id = (SELECT min(id) FROM filing)`,
    );
    const row = client.prepare('SELECT * FROM filing ORDER BY id LIMIT 1').get() as FilingRow;
    const { hash, data } = leafOfFiling(client, row);
    client.prepare('UPDATE filing SET hash = ? WHERE id = ?').run(hash, row.id);
    rewriteTree(client, row.leaf_index, data);
  });
}

/** Advances the clock until the log says why nothing can be signed. */
const isLogged = (service: Publishing, reason: RegExp) =>
  eventually(String(reason), timeoutMs, () => {
    service.clock.advance(1_000);
    return service.logLines.some(
      (line) => line.includes('no checkpoint of the evidence log') && reason.test(line),
    );
  });

/** A service that published three filings. */
async function startPublished(t: TestContext) {
  const service = await startPublishing(t);
  await service.published(await service.file(3));
  const before = service.publication.current();
  const note = keptIn(service.dataDir);
  const assertUnchanged = () => {
    service.clock.advance(5_000);
    assert.equal(service.publication.current(), before);
    assert.equal(keptIn(service.dataDir), note);
    const lines = service.logLines.filter((line) => line.includes('no checkpoint of the evidence'));
    assert.equal(lines.length, 1);
  };
  return { service, assertUnchanged };
}

test('a serving process publishes nothing after a filing was forged, and still files', async (t) => {
  const { service, assertUnchanged } = await startPublished(t);
  forge(service.dataDir);
  await service.file();
  await isLogged(service, /does not agree with what was published: the tree of its first 5 leaves/);
  await service.file();
  assertUnchanged();
});

test('a serving process publishes and files nothing after leaves were removed', async (t) => {
  const { service, assertUnchanged } = await startPublished(t);
  const client = new Sqlite(databaseIn(service.dataDir), { timeout: timeoutMs });
  client.exec('DROP TRIGGER log_leaf_is_kept; DELETE FROM log_leaf WHERE id > 1');
  client.close();
  await isLogged(service, /The evidence log is not what it was: it had 5 leaves, and the database has 2/);
  await assert.rejects(service.file(), { reason: 'RECORD_DAMAGED' });
  assertUnchanged();
});
