import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  Delivery_Status,
  type DeliverySchema,
  type RedeliverRequest,
  type WebhookService,
} from '../../../gen/artseal/v1/webhook_pb.ts';
import { instantOf } from '../../domain/calendar.ts';
import type { Clock } from '../../domain/clock.ts';
import { eventId } from '../../domain/event.ts';
import { ApiError } from '../../domain/reason.ts';
import { apiErrorData, type Violation } from '../../domain/violation.ts';
import { deliveryStatuses } from '../../domain/webhook.ts';
import { mintTestEventId } from '../../keys/mint.ts';
import { createConcurrencyLimit } from '../../lib/concurrency.ts';
import type { Execute } from '../../store/store.ts';
import type {
  StoredDelivery,
  WebhookName,
  WebhookOperator,
  WebhookTestResult,
} from '../../store/webhook-commands.ts';
import { redeliver } from '../../store/webhook-requests.ts';
import { actorOf, type Call, type Operations, ownerScope } from '../operation.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { enumWords } from './enum-words.ts';
import { messageOf } from './event-service.ts';
import { listing } from './paging.ts';

/** Concurrent redeliver calls: for one endpoint, and in total. */
const redeliveriesMax = { ofEach: 1, ofAll: 100 };

/** The endpoint that a call names. */
export function nameOf({ principal }: Call, webhookId: string): WebhookName {
  return { webhookId, owner: ownerScope(principal) };
}

/** The endpoint that a call changes. The audit log has the changes of an internal system to the endpoints of others. */
export function changedBy(call: Call, webhookId: string, clock: Pick<Clock, 'nowMs'>): ChangedWebhook {
  const name = nameOf(call, webhookId);
  if (name.owner !== undefined) return name;
  return { ...name, by: { ...actorOf(call, clock), callerId: call.principal.callerId } };
}

/** An endpoint and who changes it. */
type ChangedWebhook = WebhookName & { readonly by?: WebhookOperator };

/** The operations of WebhookService on what is sent to an endpoint. */
export function createDeliveryOperations(dependencies: ServiceDependencies) {
  const { clock, timestamp, paging, idKey } = dependencies;
  const redeliver = createRedelivery(dependencies);
  const statuses = enumWords(deliveryStatuses, Delivery_Status);
  const shown = (delivery: StoredDelivery): MessageInitShape<typeof DeliverySchema> => {
    const { sequence, type, status, attempts, lastAttemptAtMs, nextAttemptAtMs } = delivery;
    return {
      ...{ eventId: eventId(idKey, delivery), sequence: BigInt(sequence), type, attempts },
      status: Delivery_Status[status],
      ...(lastAttemptAtMs !== null && { lastAttemptAt: timestamp(lastAttemptAtMs) }),
      ...(nextAttemptAtMs !== null && { nextAttemptAt: timestamp(nextAttemptAtMs) }),
      ...answerFields(delivery),
    };
  };
  return {
    listDeliveries: listing(paging, {
      check: ({ status }) => statuses.check('status', status),
      find: (request, page, call) => {
        const status = statuses.of(request.status);
        return call.execute({ kind: 'ListDeliveries', ...nameOf(call, request.webhookId), status, page });
      },
      respond: ({ items }) => ({ deliveries: items.map(shown) }),
    }),
    redeliver: {
      check: checkWhich,
      run: (request, call) => redeliver(changedBy(call, request.webhookId, clock), request, call),
    },
    testWebhook: createTestWebhook(dependencies),
  } satisfies Partial<Operations<typeof WebhookService>>;
}

/** The events that a call selects. */
type Selected = Pick<RedeliverRequest, 'sequence' | 'since'>;

/** Sends the events that a checked call selects again, and responds with their number. Throws RATE_LIMITED, UNAVAILABLE. */
export function createRedelivery({ businessClock, onWebhookChange }: ServiceDependencies) {
  const redeliveries = createConcurrencyLimit<string>({
    ...redeliveriesMax,
    tooMany: 'Another call is sending events of this webhook again.',
    full: 'Too many calls are sending events again.',
  });
  return async (changed: ChangedWebhook, { sequence, since = '' }: Selected, call: Call) => {
    const which =
      sequence === undefined ? { sinceMs: instantOf(since) ?? 0 } : { sequence: Number(sequence) };
    const request = { ...changed, which, nowMs: businessClock.nowMs() };
    // The key has the owner, so that a call for the endpoint of another platform cannot block its owner.
    const key = `${changed.owner ?? 'internal'} ${changed.webhookId}`;
    const count = await withinLimit(redeliveries, key, call, ({ execute, executeNext }) =>
      redeliver(execute, request, executeNext),
    );
    onWebhookChange();
    return { count };
  };
}

/** Checks which events a call selects. */
export function checkWhich({ sequence, since }: Selected): Violation[] {
  if (sequence === undefined && since === undefined)
    return [{ field: 'sequence', rule: 'is required unless since is given' }];
  if (sequence !== undefined && since !== undefined)
    return [{ field: 'since', rule: 'must be left out if sequence is given' }];
  if (sequence !== undefined && (sequence < 1n || sequence > Number.MAX_SAFE_INTEGER))
    return [{ field: 'sequence', rule: `must be from 1 to ${Number.MAX_SAFE_INTEGER}` }];
  if (since !== undefined && instantOf(since) === undefined)
    return [{ field: 'since', rule: 'must be RFC 3339, as in 2026-11-21T09:15:00+08:00' }];
  return [];
}

/** The response fields of a message. Bytes that are not UTF-8 become U+FFFD. */
function answerFields({ httpStatus, answer, error }: Omit<WebhookTestResult, 'isDelivered'>): {
  readonly httpStatus?: number;
  readonly answer?: string;
  readonly error?: string;
} {
  return {
    ...(httpStatus !== null && { httpStatus }),
    ...(answer !== null && { answer: Buffer.from(answer).toString() }),
    ...(error !== null && { error }),
  };
}

/** Concurrent tests: of one caller, and in total. A test waits for its endpoint, so tests must not take up all calls. */
const testsMax = { ofCaller: 2, ofAll: 100 } as const;

/**
 * Sends test events to endpoints and returns the result. A replay sends nothing. Throws WEBHOOK_NOT_FOUND, and RATE_LIMITED or
 * UNAVAILABLE if too many tests are running.
 */
function createTestWebhook({ businessClock, timestamp, attempt }: ServiceDependencies) {
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
    const at = timestamp(businessClock.nowMs());
    const message = messageOf({ id: eventId, sequence: 0, type: 'webhook.test', at, webhookId });
    const { isDelivered, httpStatus, answer, error } = await attempt(begun.webhook, message);
    const result = { isDelivered, httpStatus, answer, error };
    await executeNext({ kind: 'EndWebhookTest', eventId, result });
    return result;
  }

  return {
    run: async ({ webhookId }: { readonly webhookId: string }, call: Call) => {
      const [{ callerId }, name] = [call.principal, nameOf(call, webhookId)];
      const { isDelivered, ...came } = await withinLimit(limit, callerId, call, (steps) => test(name, steps));
      return { delivered: isDelivered, ...answerFields(came) };
    },
  };
}

/** The result of a test without a stored result: its server stopped, or another instance has not ended it yet. */
const interrupted: WebhookTestResult = {
  ...{ isDelivered: false, httpStatus: null, answer: null },
  error: 'the result is not known: the test has not ended, or its server stopped',
};

/** The functions that run the commands of a call. */
type Steps = Pick<Call, 'execute' | 'executeNext'>;

/**
 * Runs the work of a call within a limit. Above the limit the store records the error in place of the first command, so that a
 * repetition under an Idempotency-Key still gets the stored result of the first call.
 */
async function withinLimit<Key, T>(
  limit: ReturnType<typeof createConcurrencyLimit<Key>>,
  key: Key,
  { execute, executeNext }: Steps,
  work: (steps: Steps) => Promise<T>,
): Promise<T> {
  let leave: () => void;
  try {
    leave = limit.enter(key);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const reject = (() => execute({ kind: 'Reject', apiError: apiErrorData(error) })) as Execute;
    const rejectNext = () => Promise.reject(error);
    return await work({ execute: reject, executeNext: rejectNext });
  }
  try {
    return await work({ execute, executeNext });
  } finally {
    leave();
  }
}
