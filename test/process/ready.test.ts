import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { assertOneLine, runBounded, serveWatched } from '../support/watched-command.ts';

const patienceMs = 60_000;

test('artseal ready tells by its exit code whether the service is ready', { timeout: 300_000 }, async (t) => {
  const env = { ARTSEAL_DATA_DIR: temporaryFolder(t), ARTSEAL_DRAIN_DELAY: '60' };
  const service = await serveWatched(t, env);
  const ask = () => runBounded(t, ['ready'], { ARTSEAL_URL: service.publicUrl });
  assert.deepEqual(await ask(), { code: 0, stdout: 'ready\n', stderr: '' });

  service.child.kill('SIGTERM');
  const draining = await eventually('it is not ready', patienceMs, async () => {
    const answer = await ask();
    return answer.code !== 0 && answer;
  });
  assertOneLine(draining, 1, /answers 503/, /draining/);

  await service.stop('SIGTERM');
  assertOneLine(await ask(), 1, /nothing answers at http:\/\/127\.0\.0\.1:\d+\/readyz/);
});
