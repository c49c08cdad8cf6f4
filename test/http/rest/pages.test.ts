import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Reason, reasons } from '../../../src/domain/reason.ts';
import { reasonHelp } from '../../../src/domain/reason-help.ts';
import { exampleCheckpoint, exampleKey, exampleOrigin } from '../../support/evidence-example.ts';
import { fileScope } from '../../support/file-scope.ts';
import { rawAnswer, rawExchange, rawRequest } from '../../support/raw-http.ts';
import { assertRejected } from '../../support/rejected.ts';
import { startService } from '../../support/service.ts';
import type { RestAnswer } from '../../support/signed-request.ts';
import { openBareListener } from './bare-listener.ts';

let note: string | undefined;
let keys = [exampleKey.vkey];
const listener = await openBareListener(fileScope, async () => assert.fail('A page needs no signature.'), {
  log: { checkpoint: () => note, verifierKeys: () => keys, tile: async () => undefined },
});
const ask = (path: string, method = 'GET'): Promise<RestAnswer> =>
  rawAnswer(listener.baseUrl, rawRequest(method, path, { Host: 'x' }));
const verifierPage = readFileSync(join(import.meta.dirname, '..', '..', '..', 'docs', 'verify.html'), 'utf8');

for (const path of ['/', '/docs/errors', '/verify', '/log/']) {
  test(`${path} is a page that loads nothing, cannot be framed, and sends no referrer`, async () => {
    const answer = await ask(path);
    const { answers } = await rawExchange(listener.baseUrl, rawRequest('HEAD', path, { Host: 'x' }), {
      head: true,
    });
    for (const { status, headers } of [answer, ...answers]) {
      assert.equal(status, 200);
      assert.equal(headers['content-type'], 'text/html; charset=utf-8');
      assert.equal(headers['x-content-type-options'], 'nosniff');
      assert.equal(headers['referrer-policy'], 'no-referrer');
      assert.equal(headers['cache-control'], 'no-cache');
      const policy = String(headers['content-security-policy']);
      assert.match(policy, /^default-src 'none'; /);
      assert.match(policy, /; frame-ancestors 'none'$/);
      assert.doesNotMatch(policy, /unsafe|http|\*/);
      assert.equal(headers['content-length'], String(Buffer.byteLength(answer.text)));
    }
    assert.match(answer.text, /^<!doctype html>\n<html lang="en">/);
  });

  test(`${path} takes no other method and no query`, async () => {
    assertRejected(await ask(`${path}?key=1`), 400, 'VALIDATION_FAILED');
    if (path === '/') return;
    const rejected = await ask(path, 'POST');
    assertRejected(rejected, 405, 'METHOD_NOT_ALLOWED');
    assert.equal(rejected.headers.allow, 'GET, HEAD');
  });
}

test('/docs/errors explains each error code, under the link of the error', async () => {
  const { text } = await ask('/docs/errors');
  for (const [reason, { http, code }] of Object.entries(reasons)) {
    const [, section = ''] = text.split(`<h2 id="${reason}">${reason}</h2>`);
    assert.match(
      section,
      reason === 'CANCELLED' ? /canceled/ : new RegExp(`^\\s*<p><small>HTTP ${http}, gRPC ${code}<`),
    );
    const { condition, action } = reasonHelp[reason as Reason];
    for (const sentences of [condition, action]) {
      assert.match(sentences, /^[A-Z0-9`].*\.$/, reason);
      const shown = sentences.replaceAll('"', '&quot;').replaceAll(/`([^`]*)`/g, '<code>$1</code>');
      assert.ok(section.includes(`<p>${shown}</p>`), reason);
    }
  }
  assert.doesNotMatch(text, /<script|`/);
});

test('/ describes the service, and its links work', async (t) => {
  const service = await startService(t);
  const { text } = await rawAnswer(
    service.publicUrl,
    rawRequest('GET', '/', { Host: 'x', Accept: 'text/html' }),
  );
  assert.match(text, /registry of artworks/);
  assert.match(text, /artseal call POST \/api\/v1\/filing/);
  const links = [...text.matchAll(/href="([^"]+)"/g)].map(([, link = '']) => link);
  assert.deepEqual(links, ['openapi.yaml', 'docs/errors', 'verify', 'log/', 'healthz']);
  for (const link of links) {
    const answer = await rawAnswer(service.publicUrl, rawRequest('GET', `/${link}`, { Host: 'x' }));
    assert.equal(answer.status, 200, link);
  }
  const signed = await rawAnswer(service.publicUrl, rawRequest('POST', '/', { Host: 'x' }));
  assertRejected(signed, 401, 'AUTH_HEADER_MISSING');
});

test('/verify is docs/verify.html, with the policy that it states itself', async () => {
  const { text, headers } = await ask('/verify');
  assert.equal(text, verifierPage);
  const [, stated] = /http-equiv="Content-Security-Policy" content="([^"]+)"/.exec(text) ?? [];
  assert.equal(headers['content-security-policy'], `${stated}; frame-ancestors 'none'`);
});

test('/log/ has the name and keys of the log, and a warning not to trust keys from it', async () => {
  note = undefined;
  const before = await ask('/log/');
  assert.match(before.text, /No checkpoint has been published yet/);
  note = exampleCheckpoint();
  const { text } = await ask('/log/');
  assert.match(text, /covers 5 entries/);
  for (const shown of [
    exampleOrigin,
    exampleKey.vkey,
    'artseal evidence vkey',
    'artseal log audit',
    'docs/evidence.md',
  ]) {
    assert.ok(text.includes(shown), shown);
  }
  assert.match(
    text.replaceAll('\n', ' '),
    /key that you take from the log itself proves nothing against the operator/,
  );
  const links = Array.from(text.matchAll(/href="([^"]+)"/g), ([, link = '']) => link);
  const paths = new Set(links.map((link) => new URL(link, 'http://host/log/').pathname));
  assert.deepEqual([...paths].sort(), ['/log/checkpoint', '/log/vkey', '/verify']);
});

test('/log/ shows all keys during a rotation, and escapes the name of the log', async () => {
  keys = [`<b>"&+1f6029b1+new`, `<b>"&+1f6029b1+old`];
  const { text } = await ask('/log/');
  assert.ok(text.includes('&lt;b&gt;&quot;&amp;+1f6029b1+new\n&lt;b&gt;&quot;&amp;+1f6029b1+old'));
  assert.ok(!text.includes('<b>'));
  keys = [exampleKey.vkey];
});

test('/log redirects to /log/', async () => {
  const { status, headers } = await ask('/log');
  assert.deepEqual([status, headers.location], [308, '/log/']);
});
