import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import {
  newWebhookSecret,
  parseWebhookSecret,
  signatureHeaders,
  webhookKeyBytes,
} from '../../../src/events/webhooks/signature.ts';
import vectors from '../../testdata/standard-webhooks.json' with { type: 'json' };

const nowS = 1_795_222_800;
const secretOf = (bytes: number) => `whsec_${Buffer.alloc(bytes, 0xfb).toString('base64')}`;

for (const { name, secret, signature, ...attempt } of vectors) {
  test(`headers are those of ${name}`, () => {
    const expected = {
      'webhook-id': attempt.id,
      'webhook-timestamp': String(attempt.timestampS),
      'webhook-signature': signature,
    };
    assert.deepEqual(signatureHeaders({ ...attempt, secrets: [secret] }), expected);
    const bytes = { ...attempt, body: Buffer.from(attempt.body) };
    assert.deepEqual(signatureHeaders({ ...bytes, secrets: [secret] }), expected);
    // The published package agrees that the vector is one.
    const at = new Date(attempt.timestampS * 1000);
    assert.equal(new Webhook(secret).sign(attempt.id, at, attempt.body), signature);
  });
}

test('there is a signature for each secret, also over bytes that are no text', () => {
  const secrets = [newWebhookSecret(), secretOf(webhookKeyBytes.min), secretOf(webhookKeyBytes.max)];
  for (const body of ['{}', '', '{"state":"齐白石 🖌"}', Buffer.from([0, 0xff, 0x2e, 0x0a])]) {
    const expected = secrets.map((secret) => {
      const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
      return `v1,${createHmac('sha256', key).update(`evt_1.${nowS}.`).update(body).digest('base64')}`;
    });
    const headers = signatureHeaders({ id: 'evt_1', timestampS: nowS, body, secrets });
    assert.equal(headers['webhook-signature'], expected.join(' '));
  }
});

test('a new secret is whsec_ and the base64 of 32 bytes, another each time', () => {
  const secret = newWebhookSecret();
  assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
  assert.equal(parseWebhookSecret(secret).length, 32);
  assert.notEqual(newWebhookSecret(), secret);
});

test('a malformed secret signs nothing, and no error repeats it', () => {
  assert.deepEqual(parseWebhookSecret(secretOf(24)), Buffer.alloc(24, 0xfb));
  assert.deepEqual(parseWebhookSecret(secretOf(64)), Buffer.alloc(64, 0xfb));
  const malformed = [
    ...['', 'whsec_', secretOf(23), secretOf(65), secretOf(32).replace('whsec_', 'whsk_')],
    ...[secretOf(32).slice('whsec_'.length), secretOf(32).replace('=', ''), `${secretOf(32)}\n`],
    ...[secretOf(32).replaceAll('+', '-'), secretOf(32).toUpperCase()],
  ];
  for (const secret of malformed) {
    assert.throws(
      () => signatureHeaders({ id: 'evt_1', timestampS: nowS, body: '{}', secrets: [secret] }),
      new TypeError('A webhook secret is whsec_ and the base64 of 24 to 64 bytes.'),
      secret,
    );
  }
});
