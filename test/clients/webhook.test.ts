import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ReceivedHeaders, verifyWebhook, WebhookError } from '../../clients/typescript/src/webhook.ts';
import { newWebhookSecret, signatureHeaders } from '../../src/events/webhooks/signature.ts';
import { eventBody, publishedCases, webhookCases } from '../support/webhook-cases.ts';

const nowS = 1_795_222_800;
const nowMs = nowS * 1000;
const secret = newWebhookSecret();
const sign = (body: string | Uint8Array, timestampS = nowS) =>
  signatureHeaders({ id: 'evt_1', timestampS, body, secrets: [secret] });
const headers = sign(eventBody);
const event = JSON.parse(eventBody);

/** Verifies a good webhook, or one that differs. */
const verify = (over: Partial<Parameters<typeof verifyWebhook>[0]> = {}) =>
  verifyWebhook({ headers, body: eventBody, secret, nowMs, ...over });

const rejected = (reason: string) => (error: unknown) =>
  error instanceof WebhookError && error.name === 'WebhookError' && error.reason === reason;

for (const { name, nowS: momentS, apiError, ...received } of [...publishedCases, ...webhookCases(nowS)]) {
  test(`a webhook is ${apiError ?? 'accepted'}: ${name}`, async () => {
    const verified = () => verifyWebhook({ ...received, nowMs: momentS * 1000 });
    if (apiError === undefined) assert.deepEqual(await verified(), JSON.parse(received.body));
    else await assert.rejects(verified, rejected(apiError));
  });
}

test('headers are read from Headers and from records with names in any case', async () => {
  const upper = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]),
  );
  const lists = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]));
  const forms: ReceivedHeaders[] = [headers, upper, lists, new Headers(headers), { ...headers, get: 'text' }];
  for (const form of forms) assert.deepEqual(await verify({ headers: form }), event);
  const missing = new Headers(headers);
  missing.delete('webhook-id');
  await assert.rejects(() => verify({ headers: missing }), rejected('MISSING_HEADER'));
  const twice = { ...headers, 'webhook-id': ['evt_1', 'evt_2'] };
  await assert.rejects(() => verify({ headers: twice }), rejected('BAD_SIGNATURE'));
});

test('a signature by one of several secrets is enough', async () => {
  const secrets = [newWebhookSecret(), secret];
  assert.deepEqual(await verify({ secret: secrets }), event);
  await assert.rejects(() => verify({ secret: secrets.slice(0, 1) }), rejected('BAD_SIGNATURE'));
});

test('an invalid secret is BAD_SECRET, and the message does not show it', async () => {
  const none: unknown = undefined;
  const wrong = ['', 'whsec_', secret.slice('whsec_'.length), `${secret} `, [], [secret, ''], none];
  for (const other of wrong) {
    await assert.rejects(
      () => verify({ secret: other as string }),
      (error) => rejected('BAD_SECRET')(error) && !String(error).includes(secret.slice('whsec_'.length)),
    );
  }
});

test('the time may differ by exactly the tolerance', async () => {
  const at = (differenceS: number, over: { toleranceS?: number } = {}) =>
    verify({ headers: sign(eventBody, nowS + differenceS), nowMs: nowMs + 999, ...over });
  for (const differenceS of [-300, 300]) assert.deepEqual(await at(differenceS), event);
  await assert.rejects(() => at(-301), rejected('TOO_OLD'));
  await assert.rejects(() => at(301), rejected('TOO_NEW'));
  assert.deepEqual(await at(-3600, { toleranceS: 3600 }), event);
  await assert.rejects(() => at(-1, { toleranceS: 0 }), rejected('TOO_OLD'));
});

test('a timestamp is a whole number of seconds in decimal digits', async () => {
  for (const timestamp of [`${nowS}.0`, `${nowS}s`, ` ${nowS}`, `0${nowS}`, `+${nowS}`, '1e9', '-1', '0']) {
    const other = { ...headers, 'webhook-timestamp': timestamp };
    await assert.rejects(() => verify({ headers: other }), rejected('BAD_TIMESTAMP'), timestamp);
  }
});

test('without nowMs the clock of the machine counts', async () => {
  const body = eventBody;
  const now = sign(body, Math.floor(Date.now() / 1000));
  assert.deepEqual(await verifyWebhook({ headers: now, body, secret }), event);
  await assert.rejects(
    () => verifyWebhook({ headers: sign(body, 1_614_265_330), body, secret }),
    rejected('TOO_OLD'),
  );
});

test('a parsed body is rejected: the raw body is needed', async () => {
  for (const parsed of [event, undefined, null, 5]) {
    await assert.rejects(
      () => verify({ body: parsed }),
      (error) => rejected('BAD_BODY')(error) && /raw body/.test(String(error)),
    );
  }
});

test('bytes are verified unchanged, and read as UTF-8', async () => {
  const body = new TextEncoder().encode('{"type":"future.type","data":{"name":"齐白石 🖌"}}');
  assert.deepEqual(await verify({ headers: sign(body), body }), {
    type: 'future.type',
    data: { name: '齐白石 🖌' },
  });
});

test('a signed body that is not a JSON object is rejected', async () => {
  for (const body of ['', 'null', '[]', '"text"', '{"type"', Uint8Array.of(0x22, 0xff, 0x22)]) {
    await assert.rejects(() => verify({ headers: sign(body), body }), rejected('BAD_BODY'));
  }
});
