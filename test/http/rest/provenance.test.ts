import assert from 'node:assert/strict';
import { test } from 'node:test';
import { askProvenance, fileArtwork, openEscrow, releaseEscrow } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { fileScope } from '../../support/file-scope.ts';
import { assertRejected } from '../../support/rejected.ts';
import { startService } from '../../support/service.ts';

const service = await startService(fileScope);
const platform = await service.platform();
const { filingNo } = (await fileArtwork(service, platform)).json;

test('a number in any form that names no filing is not found', async () => {
  const numbers = [
    ...['AS-2026-999999', 'AS-2026-1', filingNo.toLowerCase(), `%20${filingNo}`, `${filingNo}%0A`, '...'],
    ...['%27%20OR%201%3D1--', '__proto__', '%F0%9F%96%8C', '%0D%0ASet-Cookie:%20a=b', 'x'.repeat(2_000)],
  ];
  for (const number of numbers)
    assertRejected(await askProvenance(service, platform, number), 404, 'FILING_NOT_FOUND', /filingNo/);
});

test('each released escrow adds one TRANSFER, dated by its release, after the earlier records', async (t) => {
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
