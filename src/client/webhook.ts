import { timingSafeEqual } from 'node:crypto';
import { parseWebhookSecret, webhookHeaders, webhookSignature } from '../events/webhooks/signature.ts';

/** The body of a webhook. `data` is the event, as in the event feed. */
export interface WebhookEvent {
  /** The event type, such as `escrow.released`. Later versions may have further types. */
  readonly type: string;
  /** When it happened, RFC 3339. */
  readonly timestamp: string;
  readonly data: {
    /** The same for every attempt to deliver the event. */
    readonly id: string;
    /** The number of the event among those of the platform, from 1; 0 for a `webhook.test`. */
    readonly sequence: number;
    readonly type: string;
    readonly at: string;
    readonly filingNo?: string;
    readonly escrowId?: string;
    readonly state?: string;
    readonly keyId?: string;
    readonly month?: string;
    readonly percent?: number;
    readonly webhookId?: string;
  };
}

/** The headers of a request as Node's `request.headers`, as `Headers`, or as a record with names in any case. */
export type ReceivedHeaders =
  | { get(name: string): string | null }
  | { readonly [name: string]: string | readonly string[] | undefined };

/** A request that claims to be a webhook. */
export interface ReceivedWebhook {
  readonly headers: ReceivedHeaders;
  /** The raw body, not parsed. */
  readonly body: string | Uint8Array;
  /** `whsec_…`, or several during a rotation. A signature by any of them is enough. */
  readonly secret: string | readonly string[];
  /** The largest difference between the webhook's time and now, in seconds, inclusive; 300 by default. */
  readonly toleranceS?: number;
  /** The current time, Unix milliseconds; `Date.now()` by default. */
  readonly nowMs?: number;
}

/** Why a webhook is rejected. */
export type WebhookErrorReason =
  | 'MISSING_HEADER'
  | 'BAD_TIMESTAMP'
  | 'TOO_OLD'
  | 'TOO_NEW'
  | 'BAD_SIGNATURE'
  | 'BAD_SECRET'
  | 'BAD_BODY';

/** The error of a webhook that must not be trusted. The message says what to do, and holds no secret. */
export class WebhookError extends Error {
  readonly reason: WebhookErrorReason;

  constructor(reason: WebhookErrorReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'WebhookError';
    this.reason = reason;
  }
}

/** Standard Webhooks suggests five minutes. */
const defaultToleranceS = 300;

/** Entries of a signature header that are checked, at most. */
const signaturesMax = 32;

const unixSeconds = /^[1-9][0-9]{0,11}$/;

/**
 * Verifies the signature and time of a webhook and returns its event. Throws `WebhookError` otherwise. Webhooks are delivered at
 * least once: store the header `webhook-id` to ignore duplicates.
 */
export function verifyWebhook({
  headers,
  body,
  secret,
  toleranceS = defaultToleranceS,
  nowMs = Date.now(),
}: ReceivedWebhook): WebhookEvent {
  const keys = keysOf(secret);
  checkRaw(body);
  const id = header(headers, webhookHeaders.id);
  const timestamp = header(headers, webhookHeaders.timestamp);
  const sent = header(headers, webhookHeaders.signature).split(' ', signaturesMax);
  checkTime(timestamp, Math.floor(nowMs / 1000), toleranceS);
  const expected = keys.map((key) => webhookSignature({ id, timestamp, body }, key));
  if (!expected.some((one) => sent.some((other) => isSame(one, other)))) {
    throw new WebhookError(
      'BAD_SIGNATURE',
      `No signature in ${webhookHeaders.signature} is of this body by this secret. Pass the body byte for byte as it arrived, not parsed and serialised again, and the secret of the endpoint that it arrived at.`,
    );
  }
  return parseEvent(body);
}

function keysOf(secret: string | readonly string[]): readonly Uint8Array[] {
  const secrets = typeof secret === 'string' ? [secret] : secret;
  try {
    if (!Array.isArray(secrets) || secrets.length === 0) throw new TypeError('There is no secret.');
    return secrets.map(parseWebhookSecret);
  } catch (cause) {
    throw new WebhookError(
      'BAD_SECRET',
      'Pass the secret of the endpoint as it was issued, whsec_ included, or an array of such secrets.',
      { cause },
    );
  }
}

function checkRaw(body: unknown): void {
  if (typeof body === 'string' || body instanceof Uint8Array) return;
  throw new WebhookError(
    'BAD_BODY',
    'Pass the raw body of the request, a string or Uint8Array: the signature is of its bytes, which a parsed body has lost. In Express use express.raw({ type: "application/json" }) for this route.',
  );
}

/** The value of a header. Repeated headers are joined by spaces, like the signatures within one. */
function header(headers: ReceivedHeaders, name: string): string {
  const value =
    typeof headers.get === 'function'
      ? headers.get(name)
      : Object.entries(headers)
          .filter(([other]) => other.toLowerCase() === name)
          .flatMap(([, values = []]) => values)
          .join(' ');
  if (value) return value;
  throw new WebhookError(
    'MISSING_HEADER',
    `The header ${name} is missing. Pass all headers of the request, and see that no proxy drops it.`,
  );
}

function checkTime(timestamp: string, nowS: number, toleranceS: number): void {
  if (!unixSeconds.test(timestamp)) {
    throw new WebhookError(
      'BAD_TIMESTAMP',
      `${webhookHeaders.timestamp} must be Unix time in whole seconds.`,
    );
  }
  const ageS = nowS - Number(timestamp);
  if (Math.abs(ageS) <= toleranceS) return;
  const [reason, where] =
    ageS > 0 ? (['TOO_OLD', 'older than'] as const) : (['TOO_NEW', 'newer than'] as const);
  throw new WebhookError(
    reason,
    `${webhookHeaders.timestamp} is ${Math.abs(ageS)} seconds ${where} this machine's clock (${nowS}), more than ${toleranceS}. Set the clock; if it is right, somebody sends an old webhook again.`,
  );
}

function isSame(one: string, other: string): boolean {
  const [bytes, others] = [Buffer.from(one), Buffer.from(other)];
  return bytes.length === others.length && timingSafeEqual(bytes, others);
}

function parseEvent(body: string | Uint8Array): WebhookEvent {
  try {
    const text = typeof body === 'string' ? body : new TextDecoder('utf-8', { fatal: true }).decode(body);
    const event: unknown = JSON.parse(text);
    if (typeof event !== 'object' || event === null || Array.isArray(event))
      throw new TypeError('It is no JSON object.');
    return event as WebhookEvent;
  } catch (cause) {
    throw new WebhookError(
      'BAD_BODY',
      'The body is signed, but no JSON object: it is not from this service, or the secret is used elsewhere.',
      { cause },
    );
  }
}
