import assert from 'node:assert/strict';
import { test } from 'node:test';
import { artsealWith } from '../support/artseal.ts';
import { makeSelfSigned } from '../support/certificates.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('artseal ready returns by its exit code whether the service is ready', async (t) => {
  // The command accepts any certificate: this one is of an unknown authority.
  const { certificateFile, keyFile } = makeSelfSigned(temporaryFolder(t));
  const env = { ARTSEAL_PUBLIC_TLS_CERT: certificateFile, ARTSEAL_PUBLIC_TLS_KEY: keyFile };
  const service = await startService(t, { env });
  const artseal = artsealWith({ ARTSEAL_URL: service.publicUrl });
  assert.equal(await artseal.text('ready'), 'ready');
  service.drain();
  assert.match(await artseal.errors(1, 'ready'), /returned 503.*draining/);
  await service.close();
  assert.match(await artseal.errors(1, 'ready'), /no response from https:\/\/127\.0\.0\.1:\d+\/readyz/);
});
