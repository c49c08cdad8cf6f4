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

/** Length of the key in a secret, in bytes. */
const keyBytes = { min: 24, max: 64 } as const;

const algorithm = { name: 'HMAC', hash: 'SHA-256' };

/**
 * Verifies the signature and time of a webhook. Resolves with its event, and rejects with a `WebhookError`. Webhooks are
 * delivered at least once: store the header `webhook-id` to ignore duplicates.
 */
export async function verifyWebhook({
  headers,
  body,
  secret,
  toleranceS = defaultToleranceS,
  nowMs = Date.now(),
}: ReceivedWebhook): Promise<WebhookEvent> {
  const keys = await keysOf(secret);
  checkRaw(body);
  const id = header(headers, 'webhook-id');
  const timestamp = header(headers, 'webhook-timestamp');
  const sent = header(headers, 'webhook-signature').split(' ', signaturesMax);
  checkTime(timestamp, Math.floor(nowMs / 1000), toleranceS);
  const content = typeof body === 'string' ? body : new Uint8Array(body);
  const message = await new Blob([`${id}.${timestamp}.`, content]).arrayBuffer();
  const signatures = sent.flatMap((entry) =>
    entry.startsWith('v1,') ? (bytesOf(entry.slice(3)) ?? []) : [],
  );
  for (const key of keys) {
    for (const signature of signatures) {
      // It compares in constant time.
      if (await crypto.subtle.verify(algorithm.name, key, signature, message)) return parseEvent(body);
    }
  }
  throw new WebhookError(
    'BAD_SIGNATURE',
    'No signature in webhook-signature is of this body by this secret. Pass the body byte for byte as it arrived, not parsed and serialised again, and the secret of the endpoint that it arrived at.',
  );
}

async function keysOf(secret: string | readonly string[]): Promise<readonly CryptoKey[]> {
  const secrets: unknown = typeof secret === 'string' ? [secret] : secret;
  const keys = Array.isArray(secrets) ? secrets.map(keyOf) : [];
  const { min, max } = keyBytes;
  if (keys.length === 0 || keys.some((key) => key === undefined || key.length < min || key.length > max)) {
    throw new WebhookError(
      'BAD_SECRET',
      'Pass the secret of the endpoint as it was issued, whsec_ included, or an array of such secrets.',
    );
  }
  const bytes = keys.filter((key) => key !== undefined);
  return Promise.all(bytes.map((key) => crypto.subtle.importKey('raw', key, algorithm, false, ['verify'])));
}

const keyOf = (secret: unknown) => bytesOf(/^whsec_(.*)$/.exec(String(secret))?.[1] ?? '');

/** The bytes of padded base64; undefined if it is another text. */
function bytesOf(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    const text = atob(base64);
    return btoa(text) === base64 ? Uint8Array.from(text, (character) => character.charCodeAt(0)) : undefined;
  } catch {
    return undefined;
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
    throw new WebhookError('BAD_TIMESTAMP', 'webhook-timestamp must be Unix time in whole seconds.');
  }
  const ageS = nowS - Number(timestamp);
  if (Math.abs(ageS) <= toleranceS) return;
  const [reason, where] =
    ageS > 0 ? (['TOO_OLD', 'older than'] as const) : (['TOO_NEW', 'newer than'] as const);
  throw new WebhookError(
    reason,
    `webhook-timestamp is ${Math.abs(ageS)} seconds ${where} this machine's clock (${nowS}), more than ${toleranceS}. Set the clock; if it is right, somebody sends an old webhook again.`,
  );
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
