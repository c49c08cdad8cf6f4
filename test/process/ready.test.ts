import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeSelfSigned } from '../support/certificates.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { assertOneLine, runBounded, serveWatched } from '../support/watched-command.ts';

const timeoutMs = 60_000;

test('artseal ready tells by its exit code whether the service is ready', { timeout: 300_000 }, async (t) => {
  const folder = temporaryFolder(t);
  // Of an authority that nobody knows, and for localhost: a question about health is no place to refuse it.
  const { certificateFile, keyFile } = makeSelfSigned(folder);
  const tls = { ARTSEAL_PUBLIC_TLS_CERT: certificateFile, ARTSEAL_PUBLIC_TLS_KEY: keyFile };
  const env = { ARTSEAL_DATA_DIR: join(folder, 'data'), ARTSEAL_DRAIN_DELAY: '60', ...tls };
  const service = await serveWatched(t, env);
  const ask = () => runBounded(t, ['ready'], { ARTSEAL_URL: service.publicUrl });
  assert.deepEqual(await ask(), { code: 0, stdout: 'ready\n', stderr: '' });

  service.child.kill('SIGTERM');
  const draining = await eventually('it is not ready', timeoutMs, async () => {
    const answer = await ask();
    return answer.code !== 0 && answer;
  });
  assertOneLine(draining, 1, /returned 503/, /draining/);

  await service.stop('SIGTERM');
  assertOneLine(await ask(), 1, /no response from https:\/\/127\.0\.0\.1:\d+\/readyz/);
});
