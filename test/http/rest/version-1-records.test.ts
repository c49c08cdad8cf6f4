import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { perform } from '../../../src/store/store.ts';
import { proven } from '../../evidence/log/outsider.ts';
import { runHere } from '../../support/artseal.ts';
import { tester } from '../../support/audit-log.ts';
import { createManualClock } from '../../support/clock.ts';
import { copyFolder } from '../../support/copy-folder.ts';
import { forgeIn, toVersion1 } from '../../support/forging.ts';
import { publishAll } from '../../support/publication.ts';
import { assertRejected } from '../../support/rejected.ts';
import { artwork, escrowTerms } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { send } from '../../support/signed-request.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

test('a filing with a record of version 1 is read, proven, sold and erased as before, and hides nothing', async (t) => {
  const clock = createManualClock(Date.parse('2020-03-01T12:00:00Z'));
  const first = await startService(t, { clock });
  const platform = await first.platform();
  const timestamp = () => String(Math.floor(clock.nowMs() / 1_000));
  const body = (content?: object) => content && { body: JSON.stringify(content) };
  const filed = await send(first.publicUrl, platform, {
    ...{ target: '/api/v1/filing', timestamp: timestamp() },
    ...body(artwork),
  });
  const { filingNo, hash } = filed.json;
  // The copy has a checkpoint of LOG_BEGUN and KEY_ADDED, and none of the filing, so its leaf can still change.
  assert.equal(first.publication.current()?.size, 2);
  const dataDir = join(temporaryFolder(t), 'data');
  copyFolder(first.dataDir, dataDir);
  await first.close();
  forgeIn(join(dataDir, 'artseal.db'), toVersion1);

  const service = await startService(t, { clock, dataDir });
  const call = (target: string, content?: object) =>
    send(service.publicUrl, platform, {
      ...{ target: `/api/v1${target}`, timestamp: timestamp() },
      ...body(content),
    });
  const read = (await call(`/filing/${filingNo}`)).json;
  assert.deepEqual([read.author, read.hash, read.attachments], [artwork.author, hash, []]);
  assert.deepEqual((await call('/filing')).json.filings, [read]);
  const { escrowId } = (await call('/escrow', escrowTerms(filingNo))).json;
  assert.equal((await call(`/escrow/${escrowId}/release`, {})).json.state, 'RELEASED');
  assert.equal((await call(`/provenance/${filingNo}`)).json.records.length, 2);
  await publishAll(service, clock);

  const { json: bundle } = await call(`/filing/${filingNo}/evidence`);
  assert.deepEqual(Object.keys(bundle).sort(), [
    ...['format', 'hash', 'leaf', 'proof', 'record', 'salt', 'version'],
  ]);
  assert.deepEqual([bundle.version, bundle.hash, bundle.salt.length], [1, hash, 64]);
  const [vkey = ''] = service.publication.verifierKeys();
  const { record } = proven(bundle, vkey);
  assert.deepEqual(record, { ...artwork, filingNo, timestamp: filed.json.timestamp });
  const message = /^disclose must be left out: only a filing with a record of version 2 can hide members$/;
  const disclose = 'author,price';
  for (const answer of [
    await call(`/filing/${filingNo}/evidence?disclose=${disclose}`),
    await call(`/filing/${filingNo}/evidence/links`, { disclose }),
  ])
    assertRejected(answer, 400, 'VALIDATION_FAILED', message);

  const by = { ...tester, atS: Math.floor(Date.parse('2025-04-01T12:00:00Z') / 1_000) };
  await perform(service.store, { kind: 'AcceptClock', by });
  const erased = await perform(service.store, { kind: 'EraseFilings', by, filingNos: [filingNo] });
  assert.equal(erased.length, 1);
  assertRejected(await call(`/filing/${filingNo}/evidence`), 404, 'FILING_NOT_FOUND', /erased/);
  assert.deepEqual(proven(bundle, vkey).record, record, 'a bundle that was kept still proves it');
  await publishAll(service, clock);
  const audit = ['log', 'audit', `${service.publicUrl}/log/`, '--key', vkey];
  const { code, errors } = await runHere(audit, {});
  assert.equal(code, 0, errors.join());
});
