import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { artsealWith, runHere } from '../support/artseal.ts';
import { makeSelfSigned } from '../support/certificates.ts';
import { fileScope } from '../support/file-scope.ts';
import { artwork } from '../support/samples.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const service = await startService(fileScope);
const { apiKey, apiSecret } = await service.platform();
const env = {
  ARTSEAL_DATA_DIR: join(service.dataDir, 'none'),
  ARTSEAL_API_KEY: apiKey,
  ARTSEAL_API_SECRET: apiSecret,
  ARTSEAL_URL: service.publicUrl,
};
const uuid = '[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}';
const filing = '/api/v1/filing';

test('sign prints the four headers of a signed call', async (t) => {
  const body = JSON.stringify({ ...artwork, author: '齐白石 "Qi Baishi"\\' });
  const bodyFile = join(temporaryFolder(t), 'body.json');
  writeFileSync(bodyFile, body);
  const sign = async (...words: string[]) => {
    const lines = await artsealWith(env).lines(['sign', ...words]);
    assert.equal(lines.join().includes(apiSecret), false);
    return lines.map((line) => line.split(': ') as [string, string]);
  };
  const headers = await sign('post', filing, '--body', bodyFile);
  const names = ['X-Api-Key', 'X-Timestamp', 'X-Nonce', 'X-Signature'];
  assert.deepEqual(
    headers.map(([name]) => name),
    names,
  );
  const json = { 'Content-Type': 'application/json' };
  const posted = { method: 'POST', body, headers: { ...Object.fromEntries(headers), ...json } };
  const filed = await fetch(`${service.publicUrl}${filing}`, posted);
  assert.equal(filed.status, 200, await filed.text());
  const target = '/api/v1/provenance/AS-2026-999999';
  const read = await fetch(`${service.publicUrl}${target}`, { headers: await sign('GET', target) });
  assert.match(await read.text(), /FILING_NOT_FOUND/);
});

test('call prints the response, and exits with 0 for success and 1 for an error', async () => {
  const call = async (...words: string[]) => {
    const { code, printed, errors } = await runHere(['call', ...words], env);
    return { code, json: JSON.parse(printed.join()), status: errors.join() };
  };
  const filed = await call('POST', filing, JSON.stringify({ ...artwork, author: '齐白石' }));
  assert.equal(filed.code, 0);
  assert.match(filed.status, new RegExp(`^HTTP 200 ${uuid}$`));
  const found = await call('get', `/api/v1/provenance/${filed.json.filingNo}`);
  assert.deepEqual([found.code, found.json.author], [0, '齐白石']);
  const rejected = await call('POST', filing, '{}');
  assert.deepEqual([rejected.code, rejected.json.code], [1, 'VALIDATION_FAILED']);
  assert.match(rejected.status, new RegExp(`^HTTP 400 ${uuid}$`));
});

test('artseal ready returns by its exit code whether the service is ready', async (t) => {
  // The command accepts any certificate: this one is of an unknown authority.
  const { certificateFile, keyFile } = makeSelfSigned(temporaryFolder(t));
  const tls = { ARTSEAL_PUBLIC_TLS_CERT: certificateFile, ARTSEAL_PUBLIC_TLS_KEY: keyFile };
  const server = await startService(t, { env: tls });
  const artseal = artsealWith({ ARTSEAL_URL: server.publicUrl });
  assert.equal(await artseal.text('ready'), 'ready');
  server.drain();
  await artseal.errors(1, 'ready', /returned 503.*draining/);
  await server.close();
  await artseal.errors(1, 'ready', /https:\/\/127\.0\.0\.1:\d+\/readyz does not respond/);
});

test('listen ends with a message if it cannot begin', async () => {
  const artseal = artsealWith(env);
  await artseal.errors(2, 'listen', /needs --forward-to URL/);
  for (const url of [
    'ftp://localhost/hooks',
    'http://192.0.2.1/hooks',
    'localhost:3000',
    'http://a:b@localhost/',
  ])
    await artseal.errors(2, ['listen', '--forward-to', url], /takes a --forward-to that must /);
  const to = 'listen --forward-to http://localhost:3000/hooks';
  await artseal.errors(2, `${to} --after x`, /--after must be .*, not 'x'/);
  await artseal.errors(1, `${to} --after 999999`, /VALIDATION_FAILED: after must not be above \d+/);
  const forged = artsealWith({ ...env, ARTSEAL_API_SECRET: 'sk_sandbox_wrong' });
  await forged.errors(1, to, /SIGNATURE_INVALID: .* \(request [0-9a-f-]{36}\)/);
  await artsealWith({ ...env, ARTSEAL_URL: 'http://127.0.0.1:9' }).errors(1, to, /does not respond/);
});
