import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileArtwork } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { assertRefused } from '../../support/rejected.ts';
import { startService } from '../../support/service.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { startWitness } from '../../support/witness-stand-in.ts';

test('a filing that is refused since the log was rolled back is not counted, and can be repeated under its key', async (t) => {
  const witness = await startWitness(t, 'one.example/w');
  const witnessesFile = join(temporaryFolder(t), 'witnesses');
  writeFileSync(witnessesFile, `${witness.vkey} ${witness.url}\n`);
  witness.lie = 'CONFLICT_BEYOND';
  const clock = createManualClock(Date.now());
  const env = { ARTSEAL_TLOG_WITNESSES_FILE: witnessesFile, ARTSEAL_TLOG_WITNESSES_REQUIRED: '1' };
  const service = await startService(t, { env, clock });
  const platform = await service.platform('TRIAL');
  const { size } = await service.execute({ kind: 'GetTree' });
  const file = () => fileArtwork(service, platform, { headers: { 'Idempotency-Key': 'one' } });
  for (const _ of ['first', 'again']) {
    clock.advance(1_000);
    const refused = await file();
    assertRefused(refused, 503, 'UNAVAILABLE', /evidence log/, /Nothing was stored/);
    assert.match(String(refused.headers.ratelimit), /"monthly";r=1000;/);
  }
  assert.equal((await service.execute({ kind: 'GetTree' })).size, size);

  const [vkey = ''] = service.publication.verifierKeys();
  witness.logs.add(vkey);
  witness.lie = undefined;
  const filed = await eventually('a filing', 60_000, async () => {
    clock.advance(1_000);
    const answer = await file();
    return answer.status === 200 && answer;
  });
  assert.match(String(filed.headers.ratelimit), /"monthly";r=999;/);
});
