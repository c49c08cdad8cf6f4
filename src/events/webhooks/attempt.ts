import type { Clock } from '../../domain/clock.ts';
import { type KeyRing, SecretNotOpened } from '../../keys/key-ring.ts';
import { openUrl } from '../../keys/webhook-urls.ts';
import type { StoredWebhook } from '../../store/webhook-commands.ts';
import type { Outgoing } from './outgoing.ts';
import { readRetryAfter } from './retry.ts';
import { signatureHeaders } from './signature.ts';

/** What an endpoint is sent. */
export interface WebhookMessage {
  /** The same in every attempt. */
  readonly id: string;
  /** JSON, the same bytes in every attempt. */
  readonly body: string;
}

/** What came of one attempt. */
export interface AttemptResult {
  /** Whether it was answered 2xx in time. */
  readonly isDelivered: boolean;
  /** Null if no answer came. */
  readonly httpStatus: number | null;
  /** The first bytes of the answer; null if none came. */
  readonly answer: Uint8Array | null;
  /** Why it did not arrive, a clause for the owner of the endpoint; null if it did. */
  readonly error: string | null;
  /** The same for the operator, where there is more to say than the owner is told. */
  readonly detail?: string | undefined;
  /** How long the endpoint wants to be left alone, in seconds; undefined if it did not say. */
  readonly retryAfterS?: number | undefined;
  /** Whether the endpoint wants to be sent nothing more: it answered 410. */
  readonly isGone: boolean;
}

/** Sends a message to an endpoint once, signed with the secrets in force. The signal gives it up. Never rejects. */
export type Attempt = (
  webhook: StoredWebhook,
  message: WebhookMessage,
  signal?: AbortSignal,
) => Promise<AttemptResult>;

/** What attempts are made with. */
export interface AttemptDependencies {
  readonly outgoing: Pick<Outgoing, 'post'>;
  readonly keyRing: Pick<KeyRing, 'open'>;
  readonly clock: Clock;
  /** Of this service, which endpoints are told. */
  readonly version: string;
}

/** Makes what sends to endpoints. */
export function createAttempts({ outgoing, keyRing, clock, version }: AttemptDependencies): Attempt {
  const fixedHeaders = { 'content-type': 'application/json', 'user-agent': `Artseal-Webhooks/${version}` };

  function headersOf(webhook: StoredWebhook, { id, body }: WebhookMessage) {
    const timestampS = Math.floor(clock.nowMs() / 1_000);
    const open = (sealed: Uint8Array) => keyRing.open(sealed, webhook.webhookId).export().toString();
    const secrets = secretsInForce(webhook, timestampS).map(open);
    return { ...fixedHeaders, ...signatureHeaders({ id, timestampS, body, secrets }) };
  }

  return async (webhook, message, signal = new AbortController().signal) => {
    let [url, headers]: [string, Readonly<Record<string, string>>] = ['', {}];
    try {
      [url, headers] = [openUrl(keyRing, webhook), headersOf(webhook, message)];
    } catch (error) {
      if (!(error instanceof SecretNotOpened)) throw error;
      return failed({ error: 'the service cannot sign now', detail: error.message });
    }
    const answer = await outgoing.post({ url, headers, body: message.body, signal });
    if (answer.kind === 'FAILED') return failed({ error: answer.why, detail: answer.detail });
    const { status, body, retryAfter } = answer;
    const answered = { httpStatus: status, answer: body };
    if (status >= 200 && status < 300) return { isDelivered: true, ...answered, error: null, isGone: false };
    const retryAfterS = readRetryAfter(retryAfter, clock.nowMs());
    return failed({ ...answered, error: errorOf(status), retryAfterS, isGone: status === 410 });
  };
}

/** What an endpoint is signed to with: its secret, and the one before as long as that has not ended. */
function secretsInForce(
  { sealedSecret, previousSecret, previousEndsAtS }: StoredWebhook,
  nowS: number,
): readonly Uint8Array[] {
  const isPreviousGood = previousSecret !== null && previousEndsAtS !== null && previousEndsAtS > nowS;
  return isPreviousGood ? [sealedSecret, previousSecret] : [sealedSecret];
}

const failed = (
  result: Partial<AttemptResult> & Pick<AttemptResult, 'error'>,
): AttemptResult & { readonly isDelivered: false } => ({
  ...{ httpStatus: null, answer: null, isGone: false },
  ...result,
  isDelivered: false,
});

function errorOf(status: number): string {
  if (status === 410) return 'it answered 410 Gone';
  const isRedirect = status >= 300 && status < 400;
  return isRedirect ? `it answered ${status}, and redirections are not followed` : `it answered ${status}`;
}
