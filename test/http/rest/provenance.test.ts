import assert from 'node:assert/strict';
import { test } from 'node:test';
import { askProvenance, fileArtwork, openEscrow, releaseEscrow } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { fileScope } from '../../support/file-scope.ts';
import { assertRefused } from '../../support/rejected.ts';
import { artwork } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';

const service = await startService(fileScope);
const platform = await service.platform();
const { filingNo } = (await fileArtwork(service, platform)).json;

test('a provenance has exactly the documented members, in their order', async () => {
  const answer = await askProvenance(service, platform, filingNo);
  assert.equal(answer.status, 200, answer.text);
  assert.deepEqual(Object.keys(answer.json), ['filingNo', 'author', 'records', 'retentionYears']);
  assert.deepEqual(Object.keys(answer.json.records[0]), ['event', 'at']);
  const { at } = answer.json.records[0];
  assert.match(at, /^\d{4}-\d\d-\d\d$/);
  assert.deepEqual(answer.json, {
    filingNo,
    author: artwork.author,
    records: [{ event: 'SUBMITTED', at }],
    retentionYears: 5,
  });
});

test('any platform may ask for any filing', async () => {
  const answer = await askProvenance(service, await service.platform('TRIAL'), filingNo);
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.json.filingNo, filingNo);
});

const unknown: readonly string[] = [
  'AS-2026-999999',
  'AS-9999-000001',
  'AS-2026-0000001',
  'AS-2026-1',
  'as-2026-000001',
  'ES-2026-ABCD',
  'x',
  '-1',
  '0',
  '...',
  '%20',
  `%20${filingNo}`,
  `${filingNo}%20`,
  `${filingNo}%0A`,
  `${filingNo}%3B`,
  `${filingNo.toLowerCase()}`,
  '%27%20OR%201%3D1--',
  '%25',
  '*',
  '$%7Bx%7D',
  'undefined',
  '__proto__',
  '%E9%BD%90%E7%99%BD%E7%9F%B3',
  '%F0%9F%96%8C',
  '%EF%BF%BF',
  '%0D%0ASet-Cookie:%20a=b',
  'x'.repeat(2_000),
];

for (const number of unknown) {
  test(`no filing has the number ${number.slice(0, 40)}`, async () => {
    assertRefused(await askProvenance(service, platform, number), 404, 'FILING_NOT_FOUND', /filingNo/);
  });
}

test('each released escrow adds one TRANSFER, on its own day and after what was before', async (t) => {
  const clock = createManualClock(Date.UTC(2026, 2, 1, 12));
  const sold = await startService(t, { clock });
  const by = await sold.platform();
  const now = () => ({ timestamp: String(Math.floor(clock.nowMs() / 1_000)) });
  const { filingNo: number } = (await fileArtwork(sold, by, now())).json;
  const days = ['2026-03-02', '2026-03-03', '2026-03-04'];
  for (const day of days) {
    clock.leap(86_400_000);
    const { escrowId } = (await openEscrow(sold, by, number, {}, now())).json;
    const released = await releaseEscrow(sold, by, escrowId, now());
    assert.equal(released.json.history.at(-1).at, `${day}T12:00:00+00:00`);
  }
  const asked = await askProvenance(sold, by, number, now());
  const transfers = days.map((at) => ({ event: 'TRANSFER', at }));
  assert.deepEqual(asked.json.records, [{ event: 'SUBMITTED', at: '2026-03-01' }, ...transfers]);
});
