import type { MessageInitShape } from '@bufbuild/protobuf';
import type { TestWebhookResponseSchema } from '../../../gen/artseal/v1/webhook_pb.ts';
import type { Clock } from '../../domain/clock.ts';
import type { WebhookMessage } from '../../events/webhooks/attempt.ts';
import { mintTestEventId } from '../../keys/mint.ts';
import type { StoredWebhook, WebhookName, WebhookTestResult } from '../../store/webhook-commands.ts';
import { createConcurrencyLimit, type Steps, withinLimit } from '../concurrency-limit.ts';
import type { Call } from '../operation.ts';
import { answerFields } from './webhook-deliveries.ts';
import { messageOf } from './webhook-message.ts';

/** What testing endpoints needs. */
export interface WebhookTestDependencies {
  readonly clock: Clock;
  /** RFC 3339 of Unix milliseconds, in the business time zone. */
  readonly timestamp: (atMs: number) => string;
  /** Sends a signed message to an endpoint once and waits for the response, up to a timeout. Never rejects. */
  readonly attempt: (webhook: StoredWebhook, message: WebhookMessage) => Promise<WebhookTestResult>;
}

/** Concurrent tests: of one caller, and in total. A test waits for its endpoint, so tests must not take up all calls. */
const testsMax = { ofCaller: 2, ofAll: 100 } as const;

/**
 * Sends a test event to an endpoint and returns the result. A replay sends nothing. Throws WEBHOOK_NOT_FOUND, and RATE_LIMITED or
 * UNAVAILABLE if too many tests are running.
 */
export type TestWebhook = (
  name: WebhookName,
  call: Call,
) => Promise<MessageInitShape<typeof TestWebhookResponseSchema>>;

export function createTestWebhook({ clock, timestamp, attempt }: WebhookTestDependencies): TestWebhook {
  const limit = createConcurrencyLimit<number>({
    ofAll: testsMax.ofAll,
    ofEach: testsMax.ofCaller,
    tooMany: `A caller can run at most ${testsMax.ofCaller} tests of webhooks at a time.`,
    full: 'Too many tests of webhooks are running.',
  });

  async function test(name: WebhookName, { execute, executeNext }: Steps): Promise<WebhookTestResult> {
    const eventId = mintTestEventId();
    const begun = await execute({ kind: 'BeginWebhookTest', ...name, eventId });
    // A replay gets the test of the first call and sends nothing.
    if (begun.eventId !== eventId || begun.webhook === undefined) return begun.result ?? interrupted;
    const { webhookId } = begun.webhook;
    const at = timestamp(clock.nowMs());
    const message = messageOf({ id: eventId, sequence: 0, type: 'webhook.test', at, webhookId });
    const { isDelivered, httpStatus, answer, error } = await attempt(begun.webhook, message);
    const result = { isDelivered, httpStatus, answer, error };
    await executeNext({ kind: 'EndWebhookTest', eventId, result });
    return result;
  }

  return async (name, call) => {
    const { callerId } = call.principal;
    const { isDelivered, ...came } = await withinLimit(limit, callerId, call, (steps) => test(name, steps));
    return { delivered: isDelivered, ...answerFields(came) };
  };
}

/** The result of a test whose result was not stored. */
const interrupted: WebhookTestResult = {
  ...{ isDelivered: false, httpStatus: null, answer: null },
  error: 'the server stopped before the result was known',
};
