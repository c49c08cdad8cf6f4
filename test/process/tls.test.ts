import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeSelfSigned } from '../support/certificates.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { assertOneLine, runBounded, serveWatched } from '../support/watched-command.ts';

const limitMs = 60_000;

test('commands call a service with TLS, and SIGHUP reloads its certificate', async (t) => {
  const folder = temporaryFolder(t);
  const own = makeSelfSigned(folder);
  const env = {
    ARTSEAL_DATA_DIR: join(folder, 'data'),
    ARTSEAL_PUBLIC_TLS_CERT: own.certificateFile,
    ARTSEAL_PUBLIC_TLS_KEY: own.keyFile,
  };
  const serving = await serveWatched(t, env);
  assert.match(serving.publicUrl, /^https:\/\/127/);
  assert.match(serving.internalUrl, /^http:\/\/127/);
  const target = ['call', 'GET', '/api/v1/filing'];
  const known = { NODE_EXTRA_CA_CERTS: own.certificateFile };
  const named = { ARTSEAL_URL: serving.publicUrl.replace('127.0.0.1', 'localhost') };
  const here = { ARTSEAL_PUBLIC_ADDR: new URL(serving.publicUrl).host };
  const [demo, unknown, misnamed] = await Promise.all([
    runBounded(t, ['demo'], { ...env, ...known, ...named }),
    runBounded(t, target, { ...env, ...named }),
    runBounded(t, target, { ...env, ...known, ...here }),
  ]);
  assert.equal(demo.code, 0, demo.stderr);
  assert.match(demo.stdout, /TRANSFER/);
  assertOneLine(unknown, 1, /NODE_EXTRA_CA_CERTS/, /DEPTH_ZERO_SELF_SIGNED_CERT/);
  assertOneLine(misnamed, 1, /another name: set ARTSEAL_URL/);
  serving.child.kill('SIGHUP');
  const reloaded = /"listener":"public".*"msg":"the certificate was reloaded"/;
  await eventually('the certificate is reloaded', limitMs, () => reloaded.test(serving.stderr()));
  assert.equal(await serving.stop(), 0);
});
