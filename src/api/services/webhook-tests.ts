import type { MessageInitShape } from '@bufbuild/protobuf';
import type { TestWebhookResponseSchema } from '../../../gen/artseal/v1/webhook_pb.ts';
import type { Clock } from '../../domain/clock.ts';
import type { WebhookMessage } from '../../events/webhooks/attempt.ts';
import { mintTestEventId } from '../../keys/mint.ts';
import type { StoredWebhook, WebhookName, WebhookTestResult } from '../../store/webhook-commands.ts';
import { createConcurrencyLimit, type Steps, withinLimit } from '../concurrency-limit.ts';
import type { Call } from '../operation.ts';
import { messageOf } from './webhook-message.ts';
import { answerFields, type WebhookAnswer } from './webhook-response.ts';

/** What testing endpoints needs. */
export interface WebhookTestDependencies {
  readonly clock: Clock;
  /** RFC 3339 of Unix milliseconds, in the business time zone. */
  readonly timestamp: (atMs: number) => string;
  /** Sends a message to an endpoint once, signed, and waits for the answer, but not for ever. Never rejects. */
  readonly attempt: (
    webhook: StoredWebhook,
    message: WebhookMessage,
  ) => Promise<WebhookAnswer & { readonly isDelivered: boolean }>;
}

/**
 * Tests that are under way at the same time: of one caller, and of all. Each is a call that is under way for as long as an
 * endpoint takes to answer, so they have to leave room for others.
 */
const testsMax = { ofCaller: 2, ofAll: 100 } as const;

/**
 * Sends an endpoint an event that did not happen, and tells what came of it; a repetition under an Idempotency-Key sends nothing. Throws WEBHOOK_NOT_FOUND; RATE_LIMITED and UNAVAILABLE
 * if too many are under way.
 */
export type TestWebhook = (
  name: WebhookName,
  call: Call,
) => Promise<MessageInitShape<typeof TestWebhookResponseSchema>>;

export function createTestWebhook({ clock, timestamp, attempt }: WebhookTestDependencies): TestWebhook {
  const places = createConcurrencyLimit<number>({
    ofAll: testsMax.ofAll,
    ofEach: testsMax.ofCaller,
    tooMany: `A caller has ${testsMax.ofCaller} tests of webhooks under way at most.`,
    full: 'Too many tests of webhooks are under way.',
  });

  async function test(name: WebhookName, { execute, executeNext }: Steps): Promise<WebhookTestResult> {
    const eventId = mintTestEventId();
    const begun = await execute({ kind: 'BeginWebhookTest', ...name, eventId });
    // A repetition is given the test of the first call, and sends nothing.
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
    const { isDelivered, ...came } = await withinLimit(places, callerId, call, (steps) => test(name, steps));
    return { delivered: isDelivered, ...answerFields(came) };
  };
}

/** What is answered for a test whose result was not kept. */
const interrupted: WebhookTestResult = {
  ...{ isDelivered: false, httpStatus: null, answer: null },
  error: 'the server stopped before the result was known',
};
