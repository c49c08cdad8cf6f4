import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { evidenceHash } from '../../../src/domain/filing.ts';
import { executorOf } from '../../../src/store/store.ts';
import { askProvenance, fileArtwork, openEscrow } from '../../support/calls.ts';
import { fileScope } from '../../support/file-scope.ts';
import { assertRejected } from '../../support/rejected.ts';
import { artwork } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { send } from '../../support/signed-request.ts';

const service = await startService(fileScope);
const platform = await service.platform();
const raw = new Sqlite(join(service.dataDir, 'artseal.db'));
fileScope.after(() => raw.close());

/** Somebody who can write the file can drop the triggers that protect its rows. */
for (const table of ['filing', 'provenance_record']) raw.exec(`DROP TRIGGER ${table}_never_changes`);

const file = async (): Promise<string> => (await fileArtwork(service, platform)).json.filingNo;
const get = (filingNo: string) => send(service.publicUrl, platform, { target: `/api/v1/filing/${filingNo}` });
const list = (query = '') => send(service.publicUrl, platform, { target: `/api/v1/filing${query}` });
const provenance = (filingNo: string) => askProvenance(service, platform, filingNo);
const find = (filingNo: string, sequence: number) =>
  executorOf(service.store)({ kind: 'FindRecord', filingNo, sequence, owner: undefined });
const causedBy = (words: RegExp) => (error: Error) => words.test(String(error.cause));
const damaged = async () => (await service.store.metrics()).incidents.damagedRecords;

/** Asserts that each call returns RECORD_DAMAGED, which is counted and logged with the number. */
async function assertDamaged(
  filingNo: string,
  calls: readonly (() => ReturnType<typeof get>)[],
): Promise<void> {
  for (const call of calls) {
    const [counted, logged] = [await damaged(), service.logLines.length];
    const response = await call();
    assertRejected(response, 500, 'RECORD_DAMAGED');
    assert.doesNotMatch(response.text, /AS-20|forged/);
    assert.equal(await damaged(), counted + 1);
    const lines = service.logLines.slice(logged).filter((line) => JSON.parse(line).level === 50);
    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? '', new RegExp(`${filingNo} is not what was recorded`));
  }
}

test('a changed filing is never returned, and the filings beside it are', async (t) => {
  const [before, changed, after] = [await file(), await file(), await file()];
  raw.prepare("UPDATE filing SET author = 'forged' WHERE filing_no = ?").run(changed);
  t.after(() => raw.prepare('UPDATE filing SET author = ? WHERE filing_no = ?').run(artwork.author, changed));
  await assertDamaged(changed, [() => get(changed), () => provenance(changed), () => list()]);
  await assert.rejects(find(changed, 1), causedBy(/is not what was recorded/));
  for (const filingNo of [before, after]) {
    assert.equal((await get(filingNo)).json.filingNo, filingNo);
    assert.equal((await provenance(filingNo)).status, 200);
  }
  assert.equal((await list('?pageSize=1')).json.filings[0].filingNo, after);
});

test('a filing that was changed together with its hash is never returned, because its leaf differs', async (t) => {
  const forged = await file();
  const { hash, timestamp } = (await get(forged)).json;
  const lie = { ...artwork, price: BigInt(artwork.price), author: 'forged', filingNo: forged, timestamp };
  const set = raw.prepare('UPDATE filing SET author = ?, hash = ? WHERE filing_no = ?');
  set.run('forged', evidenceHash(lie), forged);
  t.after(() => set.run(artwork.author, hash, forged));
  await assertDamaged(forged, [() => get(forged), () => provenance(forged), () => list()]);
  await assert.rejects(find(forged, 1), causedBy(/its leaf in the evidence log/));
});

test('a backdated TRANSFER is never returned', async () => {
  const filingNo = await file();
  const { escrowId } = (await openEscrow(service, platform, filingNo)).json;
  const release = { target: `/api/v1/escrow/${escrowId}/release`, method: 'POST', body: '{}' } as const;
  assert.equal((await send(service.publicUrl, platform, release)).status, 200);
  assert.equal((await provenance(filingNo)).json.records.length, 2);
  raw.prepare("UPDATE provenance_record SET at = '1999-01-01' WHERE filing_no = ?").run(filingNo);
  await assertDamaged(filingNo, [() => provenance(filingNo)]);
  await assert.rejects(find(filingNo, 2), causedBy(/is not what was recorded/));
  assert.equal((await get(filingNo)).status, 200, 'the filing itself is unchanged');
});
