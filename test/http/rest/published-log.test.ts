import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openReadLimits } from '../../../src/evidence/log/tiles.ts';
import { askProvenance, fileArtwork } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { publishAll } from '../../support/publication.ts';
import { startService } from '../../support/service.ts';

/** test/cli/outsider.test.ts audits the whole log of a registry, and test/evidence/log/tiles.test.ts has its tiles. */
test('of all reads of the log two are at the store and 64 wait; others are rejected, and signed calls are not', async (t) => {
  const clock = createManualClock();
  const service = await startService(t, { clock });
  const platform = await service.platform();
  const asks = openReadLimits.concurrent + openReadLimits.queued + 3;
  const filed = await Promise.all(Array.from({ length: asks }, () => fileArtwork(service, platform)));
  await publishAll(service, clock);
  const held = Promise.withResolvers<void>();
  let reads = 0;
  const { execute } = service.store;
  t.mock.method(service.store, 'execute', async (request: Parameters<typeof execute>[0]) => {
    if (request.effect?.kind === 'ReadLeaves') {
      reads += 1;
      await held.promise;
    }
    return execute(request);
  });
  const rejected: object[] = [];
  // Each asks for another tile, since readers of one share a read.
  const ask = async (_: unknown, place: number) => {
    const answer = await fetch(`${service.publicUrl}/log/tile/entries/000.p/${place + 1}`);
    if (answer.status !== 200) rejected.push((await answer.json()) as object);
    return answer.status;
  };
  const asked = Array.from({ length: asks }, ask);
  await eventually('three are rejected', 60_000, () => rejected.length === 3);
  for (const error of rejected) assert.partialDeepStrictEqual(error, { code: 'UNAVAILABLE' });
  assert.equal((await askProvenance(service, platform, filed[0]?.json.filingNo)).status, 200);
  assert.equal(reads, 2);
  held.resolve();
  assert.equal((await Promise.all(asked)).filter((status) => status === 200).length, 66);
});
