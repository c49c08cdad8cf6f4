import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { connect } from 'node:http2';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { fileScope } from '../../support/file-scope.ts';
import { startService } from '../../support/service.ts';

const service = await startService(fileScope);
const file = readFileSync(join(import.meta.dirname, '..', '..', '..', 'src', 'console', 'console.html'));
const url = `${service.internalUrl}/console`;

test('the console is served without a token, under a policy that lets it call its server alone', async () => {
  const response = await fetch(`${url}?from=mail`);
  assert.equal(response.status, 200);
  assert.deepEqual(Buffer.from(await response.arrayBuffer()), file);
  const policy = response.headers.get('content-security-policy') ?? '';
  const sources = Object.fromEntries(
    policy.split('; ').map((part) => [part.split(' ', 1)[0], part.slice(part.indexOf(' ') + 1)]),
  );
  const { 'script-src': script = '', 'style-src': style = '', ...rest } = sources;
  for (const source of [script, style]) assert.match(source, /^'sha256-[\w+/]{43}='$/);
  assert.deepEqual(rest, {
    'default-src': "'none'",
    'connect-src': "'self'",
    'img-src': 'data:',
    'base-uri': "'none'",
    'form-action': "'none'",
    'require-trusted-types-for': "'script'",
    'frame-ancestors': "'none'",
  });
  assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
  assert.equal(response.headers.get('referrer-policy'), 'no-referrer');
  assert.equal(response.headers.get('access-control-allow-origin'), null);
});

test('HEAD has the same length and no body; other methods are rejected', async () => {
  const head = await fetch(url, { method: 'HEAD' });
  assert.equal(head.headers.get('content-length'), String(file.length));
  assert.equal((await head.arrayBuffer()).byteLength, 0);
  const post = await fetch(url, { method: 'POST', body: 'x' });
  assert.equal(post.status, 405);
  assert.equal(post.headers.get('allow'), 'GET, HEAD');
});

test('other paths stay RPCs, and the public API has no console', async () => {
  for (const path of ['/console/', '/console/x', '/']) {
    assert.equal((await fetch(`${service.internalUrl}${path}`)).status, 404, path);
  }
  assert.equal((await fetch(`${service.publicUrl}/console`)).status, 401);
});

test('its connection stays open for the next request', async () => {
  const agent = new Agent({ keepAlive: true });
  for (const method of ['GET', 'HEAD']) {
    const [response] = await once(request(url, { method, agent }).end(), 'response');
    await buffer(response);
    assert.equal(response.headers.connection, 'keep-alive', method);
  }
  agent.destroy();
});

test('HTTP/2 gets the same page', async (t) => {
  const session = connect(service.internalUrl);
  t.after(() => session.destroy());
  assert.deepEqual(await buffer(session.request({ ':path': '/console' })), file);
});
