import assert from 'node:assert/strict';
import { test } from 'node:test';
import { artsealWith } from '../support/artseal.ts';
import { fileArtwork } from '../support/calls.ts';
import { createManualClock } from '../support/clock.ts';
import { startService } from '../support/service.ts';

const hourS = 3_600;

test('artseal clock shows its verdict, and accepts the clock beside a running server or without one', async (t) => {
  // The command uses the clock of the machine; the service has filed by a wrong one.
  const clock = createManualClock(Date.now() + hourS * 1_000);
  const service = await startService(t, { clock });
  const platform = await service.platform();
  const stamped = () => ({ timestamp: String(Math.floor(clock.nowMs() / 1_000)) });
  const artseal = artsealWith({ ARTSEAL_DATA_DIR: service.dataDir });
  const instant = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/;

  assert.equal((await fileArtwork(service, platform, stamped())).status, 200);
  const [wall, newest, verdict] = await artseal.lines('clock show');
  assert.match(wall ?? '', instant);
  assert.match(newest ?? '', instant);
  assert.match(
    verdict ?? '',
    /are rejected: the clock is 3\d{3} s behind the newest record; .*artseal clock accept$/,
  );
  assert.match((await artseal.json('clock show')).fault, /behind the newest record$/);

  clock.setWall(Date.now());
  assert.equal((await fileArtwork(service, platform, stamped())).json.code, 'UNAVAILABLE');
  assert.match(
    await artseal.text(['clock', 'accept', '--reason', 'it was an hour ahead']),
    /^accepted .*\nnewest record/,
  );
  clock.setWall(Date.now());
  assert.equal((await fileArtwork(service, platform, stamped())).status, 200);
  assert.match(
    (await artseal.lines('clock show'))[2] ?? '',
    /are accepted, unless the log of a running server says/,
  );
  await service.close();
  assert.match((await artseal.json('clock accept')).accepted, instant);
  const accepted = (await artseal.list('audit-log')).filter(({ action }) => action === 'clock accept');
  assert.equal(accepted.at(-1)?.reason, 'it was an hour ahead');
});
