import type { WebhookErrorReason } from '../../src/client/index.ts';
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
  const withSignature = (text: string) => ({ ...genuine.headers, 'webhook-signature': text });
  const without = (name: string) =>
    Object.fromEntries(Object.entries(genuine.headers).filter(([other]) => other !== name));
  const nonAscii = eventBody.replace('RELEASED', '齐白石 🖌 général');
  const BAD_SIGNATURE = { apiError: 'BAD_SIGNATURE' } as const;
  const MISSING_HEADER = { apiError: 'MISSING_HEADER' } as const;
  return [
    { name: 'as signed', ...genuine },
    { name: 'the new secret of two', ...genuine, headers: signed([secret, another]) },
    { name: 'the old secret of two', ...genuine, headers: signed([another, secret]) },
    {
      name: 'a body that is not ASCII',
      ...{ ...genuine, headers: signed([secret], { body: nonAscii }), body: nonAscii },
    },
    {
      name: 'signatures of later versions beside it',
      ...{ ...genuine, headers: withSignature(`v2,AAAA v1a,${'A'.repeat(86)}== ${signature}`) },
    },
    { name: 'sent two minutes ago', ...genuine, headers: signed([secret], { timestampS: nowS - 120 }) },

    {
      name: 'another id',
      ...{ ...genuine, headers: { ...genuine.headers, 'webhook-id': `${id}0` }, ...BAD_SIGNATURE },
    },
    {
      name: 'another timestamp',
      ...{ ...genuine, headers: { ...genuine.headers, 'webhook-timestamp': String(nowS - 1) } },
      ...BAD_SIGNATURE,
    },
    {
      name: 'another byte in the body',
      ...{ ...genuine, body: eventBody.replace('"sequence":7', '"sequence":8'), ...BAD_SIGNATURE },
    },
    { name: 'a body serialised again', ...genuine, body: JSON.stringify(event, null, 1), ...BAD_SIGNATURE },
    { name: 'an empty body', ...genuine, body: '', ...BAD_SIGNATURE },
    {
      name: 'another byte in the signature',
      ...{ ...genuine, headers: withSignature(flipped(signature)), ...BAD_SIGNATURE },
    },
    {
      name: 'half a signature',
      ...genuine,
      headers: withSignature(signature.slice(0, 23)),
      ...BAD_SIGNATURE,
    },
    { name: 'a signature of no bytes', ...genuine, headers: withSignature('v1,'), ...BAD_SIGNATURE },
    {
      name: 'the signature under another version',
      ...{ ...genuine, headers: withSignature(signature.replace('v1,', 'v2,')), ...BAD_SIGNATURE },
    },
    {
      name: 'the signature as an asymmetric one',
      ...{ ...genuine, headers: withSignature(signature.replace('v1,', 'v1a,')), ...BAD_SIGNATURE },
    },
    { name: 'the secret of another endpoint', ...genuine, secret: another, ...BAD_SIGNATURE },
    {
      name: 'signed an hour ago',
      ...{ ...genuine, headers: signed([secret], { timestampS: nowS - 3600 }), apiError: 'TOO_OLD' },
    },
    {
      name: 'signed for an hour from now',
      ...{ ...genuine, headers: signed([secret], { timestampS: nowS + 3600 }), apiError: 'TOO_NEW' },
    },
    {
      name: 'a timestamp that is no number',
      ...{
        ...genuine,
        headers: { ...genuine.headers, 'webhook-timestamp': 'now' },
        apiError: 'BAD_TIMESTAMP',
      },
    },
    { name: 'no id', ...genuine, headers: without('webhook-id'), ...MISSING_HEADER },
    { name: 'no timestamp', ...genuine, headers: without('webhook-timestamp'), ...MISSING_HEADER },
    { name: 'no signature', ...genuine, headers: without('webhook-signature'), ...MISSING_HEADER },
  ];
}

/** The signature with one bit of its first byte changed, in base64 that is well formed. */
function flipped(signature: string): string {
  const bytes = Buffer.from(signature.slice('v1,'.length), 'base64');
  bytes[0] = (bytes[0] ?? 0) ^ 1;
  return `v1,${bytes.toString('base64')}`;
}
