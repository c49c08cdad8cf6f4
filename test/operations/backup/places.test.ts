import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createBackupPlaces } from '../../../src/operations/backup/places.ts';
import { apiError } from '../../support/rejected.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

test('a user of the machine names any absolute path', async () => {
  const places = createBackupPlaces(undefined, undefined);
  assert.equal(await places.newFile('/srv/../srv/b.tar', true), '/srv/b.tar');
  assert.equal(await places.existingFile('/srv/b.tar', true), '/srv/b.tar');
  assert.equal(await places.folder('/srv', true), '/srv');
  for (const relative of ['b.tar', './b.tar', ''])
    await assert.rejects(places.newFile(relative, true), apiError('VALIDATION_FAILED', /an absolute path/));
});

test('under systemd backups are written only where the service can write', async (t) => {
  const root = temporaryFolder(t);
  const [state, backups, other] = ['private', 'backups', 'other'].map((name) => join(root, name));
  for (const folder of [state, backups, other]) mkdirSync(folder ?? '');
  // DynamicUser= makes /var/lib/artseal such a link.
  const linked = join(root, 'state');
  symlinkSync(state ?? '', linked);
  const places = createBackupPlaces(backups, [linked]);
  for (const folder of [state, linked, backups]) {
    const file = join(folder ?? '', 'b.tar');
    assert.equal(await places.newFile(file, true), file);
    assert.equal(await places.folder(folder ?? '', true), folder);
  }
  const nowhereElse = new RegExp(
    `must be in one of ${linked}, ${backups}: the service can write nowhere else`,
  );
  for (const folder of [other, '/tmp', `${backups}-2`, root, join(root, 'missing')]) {
    const file = join(folder ?? '', 'b.tar');
    await assert.rejects(places.newFile(file, true), apiError('VALIDATION_FAILED', nowhereElse));
    await assert.rejects(places.folder(folder ?? '', true), apiError('VALIDATION_FAILED', nowhereElse));
    assert.equal(await places.existingFile(file, true), file);
  }
});
