import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { evidenceHash } from '../../../src/domain/filing.ts';
import { askProvenance, fileArtwork, openEscrow, releaseEscrow } from '../../support/calls.ts';
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
const damaged = async () => (await service.store.metrics()).incidents.damagedRecords;
const hashOfLie = (filingNo: string, timestamp: string) =>
  evidenceHash({ ...artwork, price: BigInt(artwork.price), author: 'forged', filingNo, timestamp });

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

for (const [what, hashOf, cause] of [
  ['a changed filing', (_: string, __: string, hash: string) => hash, /is not what was recorded/],
  ['a filing that was changed together with its hash', hashOfLie, /its leaf in the evidence log/],
] as const) {
  test(`${what} is never returned, and the filings beside it are`, async (t) => {
    const [before, changed, after] = [await file(), await file(), await file()];
    const { hash, timestamp } = (await get(changed)).json;
    const set = raw.prepare('UPDATE filing SET author = ?, hash = ? WHERE filing_no = ?');
    set.run('forged', hashOf(changed, timestamp, hash), changed);
    t.after(() => set.run(artwork.author, hash, changed));
    await assertDamaged(changed, [() => get(changed), () => provenance(changed), () => list()]);
    const found = service.execute({ kind: 'FindRecord', filingNo: changed, sequence: 1, owner: undefined });
    await assert.rejects(found, (error: Error) => cause.test(String(error.cause)));
    for (const filingNo of [before, after]) {
      assert.equal((await get(filingNo)).json.filingNo, filingNo);
      assert.equal((await provenance(filingNo)).status, 200);
    }
    assert.equal((await list('?pageSize=1')).json.filings[0].filingNo, after);
  });
}

test('a backdated TRANSFER is never returned', async () => {
  const filingNo = await file();
  const { escrowId } = (await openEscrow(service, platform, filingNo)).json;
  assert.equal((await releaseEscrow(service, platform, escrowId)).status, 200);
  assert.equal((await provenance(filingNo)).json.records.length, 2);
  raw.prepare("UPDATE provenance_record SET at = '1999-01-01' WHERE filing_no = ?").run(filingNo);
  await assertDamaged(filingNo, [() => provenance(filingNo)]);
  assert.equal((await get(filingNo)).status, 200, 'the filing itself is unchanged');
});
