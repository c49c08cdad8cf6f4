import assert from 'node:assert/strict';
import { chmodSync, chownSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { type TestContext, test } from 'node:test';
import { FilesExposed, readableByOthers, refuseChangeableByOthers } from '../../src/lib/file-access.ts';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { sandbox } from '../store/promises/fixtures.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const noUsers = process.platform === 'win32' && 'Windows has no modes';
const root = 0;

const makers = { file: (path: string) => writeFileSync(path, ''), folder: mkdirSync };

/** A file or a folder of a mode. */
function pathOf(t: TestContext, kind: keyof typeof makers, mode: number): string {
  const path = join(temporaryFolder(t), `a ${kind}`);
  makers[kind](path);
  chmodSync(path, mode);
  return path;
}

function errorOf(...paths: string[]): string {
  try {
    refuseChangeableByOthers(paths);
  } catch (error) {
    assert.ok(error instanceof FilesExposed, String(error));
    return error.message;
  }
  throw new assert.AssertionError({ message: `${paths} was not refused` });
}

for (const [kind, safe, exposed] of [
  ['file', [0o400, 0o600, 0o640, 0o644, 0o700], [0o602, 0o620, 0o622, 0o660, 0o666]],
  ['folder', [0o700, 0o750, 0o755, 0o1755], [0o702, 0o770, 0o775, 0o777, 0o1777]],
] as const) {
  test(`${kind}: a path that group or others may change is rejected`, { skip: noUsers }, (t) => {
    for (const mode of safe) refuseChangeableByOthers([pathOf(t, kind, mode)]);
    for (const mode of exposed) {
      const path = pathOf(t, kind, mode);
      const shownMode = mode.toString(8).padStart(4, '0');
      assert.equal(
        errorOf(path),
        `${path} (mode ${shownMode}) may be changed by other users of this machine: chmod go-w '${path}'.`,
      );
    }
  });

  test(`${kind}: a path that others may read is reported, one for the group is not`, {
    skip: noUsers,
  }, (t) => {
    for (const mode of [...safe, ...exposed]) {
      const path = pathOf(t, kind, mode);
      const readable = readableByOthers([path]).map((found) => found.path);
      assert.deepEqual(readable, (mode & 0o004) === 0 ? [] : [path], mode.toString(8));
    }
  });
}

test('one error names all exposed paths', { skip: noUsers }, (t) => {
  const paths = [pathOf(t, 'file', 0o666), pathOf(t, 'file', 0o600), pathOf(t, 'folder', 0o777)];
  const message = errorOf(...paths);
  assert.deepEqual(
    paths.map((path) => message.includes(path)),
    [true, false, true],
  );
});

test('the file that a link leads to counts', { skip: noUsers }, (t) => {
  const link = join(temporaryFolder(t), 'link');
  symlinkSync(pathOf(t, 'file', 0o620), link);
  assert.match(errorOf(link), /mode 0620/);
});

test('the folder of a target counts, since its owner can replace the file', {
  skip: noUsers,
}, (t) => {
  const [exposed, safe] = [pathOf(t, 'folder', 0o777), pathOf(t, 'folder', 0o755)];
  writeFileSync(join(exposed, 'target'), '', { mode: 0o600 });
  // The second by way of the first, which leads there from its own folder.
  const [link, second] = [join(safe, 'link'), join(temporaryFolder(t), 'second')];
  symlinkSync(relative(safe, join(exposed, 'target')), link);
  symlinkSync(link, second);
  for (const path of [link, second]) assert.match(errorOf(path), new RegExp(`^${exposed} \\(mode 0777\\)`));
  chmodSync(exposed, 0o755);
  refuseChangeableByOthers([link, second]);
});

test('missing paths are no fault', (t) => {
  const folder = temporaryFolder(t);
  const dangling = join(folder, 'link');
  symlinkSync(join(folder, 'none'), dangling);
  const paths = [join(folder, 'none'), dangling, join(pathOf(t, 'file', 0o600), 'below a file')];
  refuseChangeableByOthers(paths);
  assert.deepEqual(readableByOthers(paths), []);
});

test('any owner but this user and root is rejected', { skip: noUsers }, (t) => {
  const file = pathOf(t, 'file', 0o600);
  const me = statSync(file).uid;
  // Root alone can give a file away, and to root alone belong files that anybody else must trust.
  const [owner, user] = me === root ? [1234, root] : [me, me + 1];
  if (me === root) chownSync(file, owner, -1);
  assert.throws(() => refuseChangeableByOthers([file], user), {
    name: 'FilesExposed',
    message: `${file} belongs to the user with id ${owner}, who may change it: run artseal as that user, or chown ${user} '${file}'.`,
  });
  refuseChangeableByOthers([file], owner);
  refuseChangeableByOthers(['/'], owner);
});

test('the lock of a data folder is readable by this user alone, an old one too', {
  skip: noUsers,
}, async (t) => {
  const dataDir = temporaryFolder(t);
  const lock = join(dataDir, 'artseal.lock');
  for (const change of [() => {}, () => chmodSync(lock, 0o644)]) {
    change();
    const store = createSqliteStore({ dataDir, ...sandbox });
    assert.equal(statSync(lock).mode & 0o777, 0o600);
    await store.close();
  }
});
