import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runHere } from '../support/artseal.ts';
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
  const env = { ARTSEAL_DATA_DIR: service.dataDir };
  const artseal = async (...words: string[]) => {
    const { code, printed, errors } = await runHere(['clock', ...words], env);
    assert.deepEqual([code, errors], [0, []]);
    return printed;
  };
  const instant = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/;

  assert.equal((await fileArtwork(service, platform, stamped())).status, 200);
  const [wall, newest, verdict] = await artseal('show');
  assert.match(wall ?? '', instant);
  assert.match(newest ?? '', instant);
  assert.match(
    verdict ?? '',
    /are rejected: the clock is 3\d{3} s behind the newest record; .*artseal clock accept$/,
  );
  assert.match(JSON.parse((await artseal('show', '--json'))[0] ?? '').fault, /behind the newest record$/);

  clock.setWall(Date.now());
  assert.equal((await fileArtwork(service, platform, stamped())).json.code, 'UNAVAILABLE');
  assert.match(
    (await artseal('accept', '--reason', 'it was an hour ahead')).join('\n'),
    /^accepted .*\nnewest record/,
  );
  clock.setWall(Date.now());
  assert.equal((await fileArtwork(service, platform, stamped())).status, 200);
  assert.match((await artseal('show'))[2] ?? '', /are accepted, unless the log of a running server says/);
  await service.close();
  assert.match(JSON.parse((await artseal('accept', '--json'))[0] ?? '').accepted, instant);
  const { printed } = await runHere(['audit-log', '--json'], env);
  const accepted = printed.map((line) => JSON.parse(line)).filter(({ action }) => action === 'clock accept');
  assert.equal(accepted.at(-1)?.reason, 'it was an hour ahead');
});
