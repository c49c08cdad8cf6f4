import type { WebhookErrorReason } from '../../clients/typescript/src/webhook.ts';
import { newWebhookSecret, signatureHeaders } from '../../src/events/webhooks/signature.ts';
import vectors from '../testdata/standard-webhooks.json' with { type: 'json' };

/** A request to a receiver that knows `secret`, at a time of its clock. */
export interface WebhookCase {
  readonly name: string;
  readonly secret: string;
  /** Unix seconds. */
  readonly nowS: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Why it must be rejected; undefined if it must be accepted. */
  readonly apiError?: WebhookErrorReason;
}

/** The vectors that Standard Webhooks publishes. */
export const publishedCases: readonly WebhookCase[] = vectors.map(
  ({ name, secret, id, timestampS, body, signature }) => ({
    ...{ name, secret, body, nowS: timestampS },
    headers: { 'webhook-id': id, 'webhook-timestamp': String(timestampS), 'webhook-signature': signature },
  }),
);

const event = {
  type: 'escrow.released',
  timestamp: '2026-11-23T16:15:30+08:00',
  data: {
    ...{ id: 'evt_5f0c9a4be17d2638c41fd0a96b7e3852', sequence: 7, type: 'escrow.released' },
    ...{ at: '2026-11-23T16:15:30+08:00', filingNo: 'AS-2026-000001', escrowId: 'ES-2026-0K3Z' },
    state: 'RELEASED',
  },
};

/** The body of an event as webhooks send it. */
export const eventBody = JSON.stringify(event);

/**
 * Requests that every verifier of Standard Webhooks has to accept or reject, with secrets of their own.
 */
export function webhookCases(nowS: number): readonly WebhookCase[] {
  const secret = newWebhookSecret();
  const another = newWebhookSecret();
  const id = event.data.id;
  const signed = (secrets: readonly string[], more: { timestampS?: number; body?: string } = {}) =>
    signatureHeaders({ id, timestampS: nowS, body: eventBody, secrets, ...more });
  const genuine = { secret, nowS, headers: signed([secret]), body: eventBody };
  const { 'webhook-signature': signature } = genuine.headers;
  const withSignature = (text: string) => withHeader('webhook-signature', text);
  const without = (name: string) =>
    Object.fromEntries(Object.entries(genuine.headers).filter(([other]) => other !== name));
  const withHeader = (name: string, value: string) => ({ headers: { ...genuine.headers, [name]: value } });
  const nonAscii = eventBody.replace('RELEASED', '齐白石 🖌 général');
  const accepted: Readonly<Record<string, Partial<WebhookCase>>> = {
    'as signed': {},
    'the new secret of two': { headers: signed([secret, another]) },
    'the old secret of two': { headers: signed([another, secret]) },
    'a body that is not ASCII': { headers: signed([secret], { body: nonAscii }), body: nonAscii },
    'signatures of later versions beside it': withSignature(`v2,AAAA v1a,${'A'.repeat(86)}== ${signature}`),
    'sent two minutes ago': { headers: signed([secret], { timestampS: nowS - 120 }) },
  };
  const badSignatures: typeof accepted = {
    'another id': withHeader('webhook-id', `${id}0`),
    'another timestamp': withHeader('webhook-timestamp', String(nowS - 1)),
    'another byte in the body': { body: eventBody.replace('"sequence":7', '"sequence":8') },
    'a body serialised again': { body: JSON.stringify(event, null, 1) },
    'an empty body': { body: '' },
    'another byte in the signature': withSignature(flipped(signature)),
    'half a signature': withSignature(signature.slice(0, 23)),
    'a signature of no bytes': withSignature('v1,'),
    'the signature under another version': withSignature(signature.replace('v1,', 'v2,')),
    'the signature as an asymmetric one': withSignature(signature.replace('v1,', 'v1a,')),
    'the secret of another endpoint': { secret: another },
  };
  const others: typeof accepted = {
    'signed an hour ago': { headers: signed([secret], { timestampS: nowS - 3600 }), apiError: 'TOO_OLD' },
    'signed for an hour from now': {
      ...{ headers: signed([secret], { timestampS: nowS + 3600 }), apiError: 'TOO_NEW' },
    },
    'a timestamp that is no number': { ...withHeader('webhook-timestamp', 'now'), apiError: 'BAD_TIMESTAMP' },
    'no id': { headers: without('webhook-id'), apiError: 'MISSING_HEADER' },
    'no timestamp': { headers: without('webhook-timestamp'), apiError: 'MISSING_HEADER' },
    'no signature': { headers: without('webhook-signature'), apiError: 'MISSING_HEADER' },
  };
  const casesOf = (changes: typeof accepted, more: Partial<WebhookCase> = {}) =>
    Object.entries(changes).map(([name, change]) => ({ name, ...genuine, ...more, ...change }));
  return [...casesOf(accepted), ...casesOf(badSignatures, { apiError: 'BAD_SIGNATURE' }), ...casesOf(others)];
}

/** The signature with one bit of its first byte changed, in base64 that is well formed. */
function flipped(signature: string): string {
  const bytes = Buffer.from(signature.slice('v1,'.length), 'base64');
  bytes[0] = (bytes[0] ?? 0) ^ 1;
  return `v1,${bytes.toString('base64')}`;
}
