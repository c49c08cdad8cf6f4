import type { Clock } from '../../domain/clock.ts';
import { retryDelaysS, retryJitter } from '../../domain/webhook.ts';
import { type KeyRing, SecretNotOpened } from '../../keys/key-ring.ts';
import { openUrl } from '../../keys/sealed-secrets.ts';
import type { DeliveryResult, StoredWebhook, WebhookTestResult } from '../../store/webhook-commands.ts';
import type { Outgoing, OutgoingRequest } from './outgoing.ts';
import { signatureHeaders } from './signature.ts';

/** The body that an endpoint is sent, and its id. */
export interface WebhookMessage {
  /** The same in every attempt. */
  readonly id: string;
  /** JSON, the same bytes in every attempt. */
  readonly body: string;
}

/** The result of one attempt. */
export interface AttemptResult extends WebhookTestResult {
  /** More about the failure, for the operator only. */
  readonly detail?: string | undefined;
  /** From the Retry-After header, in seconds; undefined for none. */
  readonly retryAfterS?: number | undefined;
}

/** Sends a message to an endpoint once, signed with the valid secrets. The signal aborts it. */
export type Attempt = (
  webhook: StoredWebhook,
  message: WebhookMessage,
  signal?: AbortSignal,
) => Promise<AttemptResult>;

/** A message to a URL, signed with `whsec_…` secrets. */
type SignedPost = Pick<OutgoingRequest, 'url' | 'signal'> & { message: WebhookMessage; secrets: string[] };

interface SendingDependencies {
  readonly outgoing: Pick<Outgoing, 'post'>;
  readonly clock: Pick<Clock, 'nowMs'>;
  /** The version of Artseal, for the User-Agent header. */
  readonly version: string;
}

/** Returns the function that signs a message and sends it once. It rejects only with TypeError, for a malformed secret. */
export function createSignedPost({ outgoing, clock, version }: SendingDependencies) {
  const fixedHeaders = { 'content-type': 'application/json', 'user-agent': `Artseal-Webhooks/${version}` };

  return async ({ url, secrets, message, signal }: SignedPost): Promise<AttemptResult> => {
    const timestampS = Math.floor(clock.nowMs() / 1_000);
    const headers = { ...fixedHeaders, ...signatureHeaders({ ...message, timestampS, secrets }) };
    const response = await outgoing.post({ url, headers, body: message.body, signal });
    if (response.kind === 'FAILED') return failedAttempt({ error: response.why, detail: response.detail });
    const { status, body, retryAfter } = response;
    const answered = { httpStatus: status, answer: body };
    if (status >= 200 && status < 300) return { isDelivered: true, ...answered, error: null };
    const retryAfterS = readRetryAfter(retryAfter, clock.nowMs());
    return failedAttempt({ ...answered, error: errorOf(status), retryAfterS });
  };
}

interface AttemptDependencies extends SendingDependencies {
  readonly keyRing: Pick<KeyRing, 'open'>;
}

/** Returns the function that makes attempts. */
export function createAttempts({ keyRing, ...sending }: AttemptDependencies): Attempt {
  const post = createSignedPost(sending);

  /** Decrypts the URL and the valid secrets. Throws SecretNotOpened. */
  function opened(webhook: StoredWebhook) {
    const nowS = Math.floor(sending.clock.nowMs() / 1_000);
    const open = (sealed: Uint8Array) => keyRing.open(sealed, webhook.webhookId).export().toString();
    return { url: openUrl(keyRing, webhook), secrets: validSecrets(webhook, nowS).map(open) };
  }

  return async (webhook, message, signal = new AbortController().signal) => {
    let target: ReturnType<typeof opened>;
    try {
      target = opened(webhook);
    } catch (error) {
      if (!(error instanceof SecretNotOpened)) throw error;
      return failedAttempt({ error: 'the server cannot sign it now', detail: error.message });
    }
    return post({ ...target, message, signal });
  };
}

/** The current secret, and the previous one until it ends. */
function validSecrets(
  { sealedSecret, previousSecret, previousEndsAtS }: StoredWebhook,
  nowS: number,
): readonly Uint8Array[] {
  const isPreviousValid = previousSecret !== null && previousEndsAtS !== null && previousEndsAtS > nowS;
  return isPreviousValid ? [sealedSecret, previousSecret] : [sealedSecret];
}

/** The result of an attempt that failed, by default without a response. */
export function failedAttempt(result: Partial<AttemptResult> & Pick<AttemptResult, 'error'>): AttemptResult {
  return { httpStatus: null, answer: null, ...result, isDelivered: false };
}

function errorOf(status: number): string {
  if (status === 410) return 'it answered 410 Gone';
  const isRedirect = status >= 300 && status < 400;
  return isRedirect ? `it answered ${status}, and redirections are not followed` : `it answered ${status}`;
}

/** The longest Retry-After that is honored, in seconds: a day. */
const retryAfterMaxS = 86_400;

/**
 * Returns when an event is sent again, Unix milliseconds; null after the last attempt. A Retry-After header can delay the
 * attempt, up to a day, and never makes it earlier. `random` returns a number from 0 to 1.
 */
export function retryAtMs(
  {
    attempts,
    atMs,
    retryAfterS = 0,
  }: Pick<DeliveryResult & AttemptResult, 'attempts' | 'atMs' | 'retryAfterS'>,
  random: () => number,
): number | null {
  const delayS = retryDelaysS[attempts - 1];
  if (delayS === undefined) return null;
  const jitteredS = delayS * (1 + retryJitter * random());
  return atMs + Math.round(1_000 * Math.max(jitteredS, Math.min(retryAfterS, retryAfterMaxS)));
}

/** Reads a Retry-After header, seconds or an HTTP date, as seconds from `nowMs`; undefined unless it names a later time. */
export function readRetryAfter(text: string | undefined, nowMs: number): number | undefined {
  const value = text?.trim() ?? '';
  const seconds = /^\d+$/.test(value) ? Number(value) : (dateMs(value) - nowMs) / 1_000;
  return seconds > 0 ? seconds : undefined;
}

/** Parses an HTTP date as Unix milliseconds; NaN if it is none. The oldest of the three formats does not name GMT. */
function dateMs(text: string): number {
  if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text)) return Number.NaN;
  return Date.parse(text.endsWith(' GMT') ? text : `${text} GMT`);
}
