import type { MessageInitShape } from '@bufbuild/protobuf';
import type { TestWebhookResponseSchema } from '../../gen/artseal/v1/webhook_pb.ts';
import type { Call } from '../calls/operation.ts';
import { createPlaces } from '../calls/places.ts';
import type { Clock } from '../domain/clock.ts';
import { mintTestEventId } from '../keys/mint.ts';
import type { StoredWebhook, WebhookName } from '../store/webhook-commands.ts';
import type { WebhookMessage } from '../webhooks/attempt.ts';
import { answerFields, type WebhookAnswer } from './webhook-answer.ts';
import { messageOf } from './webhook-message.ts';

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
 * Sends an endpoint an event that did not happen, and tells what came of it. Throws WEBHOOK_NOT_FOUND; RATE_LIMITED and UNAVAILABLE
 * if too many are under way.
 */
export type TestWebhook = (
  name: WebhookName,
  call: Call,
) => Promise<MessageInitShape<typeof TestWebhookResponseSchema>>;

export function createTestWebhook({ clock, timestamp, attempt }: WebhookTestDependencies): TestWebhook {
  const places = createPlaces<number>({
    ofAll: testsMax.ofAll,
    ofEach: testsMax.ofCaller,
    tooMany: `A caller has ${testsMax.ofCaller} tests of webhooks under way at most.`,
    full: 'Too many tests of webhooks are under way.',
  });

  async function test(name: WebhookName, { execute }: Call) {
    const find = { kind: 'FindWebhook', ...name } as const;
    await execute(find);
    // Under an Idempotency-Key the first is the endpoint as it was then; a test is made anew.
    const webhook = await execute(find);
    const { isDelivered, ...came } = await attempt(webhook, testMessage(webhook, timestamp(clock.nowMs())));
    return { delivered: isDelivered, ...answerFields(came) };
  }

  return async (name, call) => {
    const leave = places.enter(call.principal.callerId);
    try {
      return await test(name, call);
    } finally {
      leave();
    }
  };
}

function testMessage({ webhookId }: StoredWebhook, at: string): WebhookMessage {
  return messageOf({ id: mintTestEventId(), sequence: 0, type: 'webhook.test', at, webhookId });
}
