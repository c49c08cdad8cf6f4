import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  Delivery_Status,
  type DeliverySchema,
  Webhook_Status,
  type WebhookSchema,
  WebhookService,
} from '../../../gen/artseal/v1/webhook_pb.ts';
import { instantOf } from '../../domain/calendar.ts';
import type { Clock } from '../../domain/clock.ts';
import { eventId } from '../../domain/event.ts';
import type { Violation } from '../../domain/violation.ts';
import {
  checkDescription,
  checkEventTypes,
  checkSecretOverlap,
  type DeliveryStatus,
  deliveryStatuses,
  everyType,
  secretOverlapS,
  typesIn,
  type WebhookStatus,
  webhookStatuses,
} from '../../domain/webhook.ts';
import { newWebhookSecret } from '../../events/webhooks/signature.ts';
import { type KeyRing, SecretNotOpened } from '../../keys/key-ring.ts';
import { mintWebhookId } from '../../keys/mint.ts';
import { openUrl, sealUrl } from '../../keys/webhook-urls.ts';
import { redeliver } from '../../store/redelivery.ts';
import type { StoredDelivery, StoredWebhook } from '../../store/webhook-commands.ts';
import { deleteWebhook } from '../../store/webhook-deletion.ts';
import { createConcurrencyLimit, withinLimit } from '../concurrency-limit.ts';
import { type Call, type Implementation, implement, operation, parsed } from '../operation.ts';
import { ownerScope } from '../principal.ts';
import type { Paging } from './paging.ts';
import { answerFields } from './webhook-response.ts';
import { createTestWebhook, type WebhookTestDependencies } from './webhook-tests.ts';

/** What the operations on webhooks need. */
export interface WebhookDependencies extends WebhookTestDependencies {
  readonly keyRing: KeyRing;
  readonly clock: Clock;
  /** RFC 3339 of Unix milliseconds, in the business time zone. */
  readonly timestamp: (atMs: number) => string;
  readonly paging: Paging;
  /** The key of event ids, as in `eventId`. */
  readonly idKey: Uint8Array;
  /** Returns the rule that a URL breaks, to follow the name of its field; undefined if it is allowed. */
  readonly checkTarget: (url: string) => string | undefined;
  /** Called when endpoints or their deliveries may have changed. */
  readonly onChange: () => void;
}

/** Concurrent redeliver calls: for one endpoint, and in total. */
const redeliveriesMax = { ofEach: 1, ofAll: 100 };

/** The operations of WebhookService. A platform manages its own endpoints, an internal system all of them. */
export function createWebhookService(dependencies: WebhookDependencies): Implementation {
  const { keyRing, clock, timestamp, paging, idKey, checkTarget, onChange } = dependencies;
  const test = createTestWebhook(dependencies);
  const redeliveries = createConcurrencyLimit<string>({
    ...redeliveriesMax,
    tooMany: 'Another call is sending events of this webhook again.',
    full: 'Too many calls are sending events again.',
  });

  const nowS = () => Math.floor(clock.nowMs() / 1_000);
  const shown = (webhook: StoredWebhook) =>
    webhookMessage(webhook, openUrl(keyRing, webhook), nowS(), timestamp);
  /** An endpoint as a call may see it. Its URL may hold secrets, so a token without the scope `webhook` gets only the origin. */
  const readBy = ({ principal }: Call, webhook: StoredWebhook) =>
    principal.kind === 'platform' || principal.scopes.includes('webhook')
      ? shown(webhook)
      : webhookMessage(webhook, webhook.origin, nowS(), timestamp);
  const nameOf = ({ principal }: Call, webhookId: string) => ({ webhookId, owner: ownerScope(principal) });

  const checkUrl = (url: string): Violation[] => {
    const rule = checkTarget(url);
    return rule === undefined ? [] : [{ field: 'url', rule }];
  };

  const secretOf = ({ sealedSecret, webhookId }: StoredWebhook): string =>
    keyRing.open(sealedSecret, webhookId).export().toString();

  /** Applies `make` to an endpoint that a command returned. */
  async function openable<T>(
    webhook: StoredWebhook,
    call: Call,
    make: (webhook: StoredWebhook) => T,
  ): Promise<T> {
    try {
      return make(webhook);
    } catch (error) {
      if (!(error instanceof SecretNotOpened)) throw error;
      // A replay returns the endpoint as stored then. Its secrets may have been sealed under another key since.
      return make(await call.execute({ kind: 'FindWebhook', ...nameOf(call, webhook.webhookId) }));
    }
  }

  /** An endpoint with its stored secret, which an earlier call may have created. */
  function issued(webhook: StoredWebhook, call: Call) {
    onChange();
    return openable(webhook, call, (one) => ({ webhook: shown(one), secret: secretOf(one) }));
  }

  return implement(WebhookService, 'webhook', {
    createWebhook: operation({
      parse: ({ url, eventTypes: words, description }) => {
        const violations = [...checkUrl(url), ...checkEventTypes(words), ...checkDescription(description)];
        return parsed(violations, () => ({ url, eventTypes: filterOf(words), description }));
      },
      run: async ({ url, ...given }, call) => {
        const webhookId = mintWebhookId();
        const sealedSecret = keyRing.seal(newWebhookSecret(), webhookId);
        const sealed = { sealedSecret, ...sealUrl(keyRing, webhookId, url) };
        const webhook = { ...given, ...sealed, webhookId, createdAtS: nowS() };
        const owner = call.principal.callerId;
        return issued(await call.execute({ kind: 'AddWebhook', owner, webhook }), call);
      },
    }),
    listWebhooks: operation({
      parse: (request, principal) =>
        parsed(paging.check(request, principal), () => ({
          page: paging.query(request, principal),
          request,
        })),
      run: async ({ page, request }, call) => {
        const { execute, principal } = call;
        const found = await execute({ kind: 'ListWebhooks', owner: ownerScope(principal), page });
        const webhooks = found.items.map((webhook) => readBy(call, webhook));
        return { webhooks, nextPageToken: paging.token(found, request, principal) };
      },
    }),
    getWebhook: operation({
      parse: parseId,
      run: async (webhookId, call) => {
        const found = await call.execute({ kind: 'FindWebhook', ...nameOf(call, webhookId) });
        return { webhook: readBy(call, found) };
      },
    }),
    updateWebhook: operation({
      parse: ({ webhookId, url, eventTypes: words, description, status }) => {
        const violations = [
          ...(url === undefined ? [] : checkUrl(url)),
          ...checkEventTypes(words),
          ...checkDescription(description ?? ''),
          ...checkStatus(status),
        ];
        const eventTypes = words.length === 0 ? undefined : (filterOf(words) ?? ('ALL' as const));
        const change = { eventTypes, description, status: statusOf(status) };
        return parsed(violations, () => ({ webhookId, url, change }));
      },
      run: async ({ webhookId, url: given, change }, call) => {
        const url = given === undefined ? undefined : sealUrl(keyRing, webhookId, given);
        const changed = await call.execute({
          ...{ kind: 'ChangeWebhook', ...nameOf(call, webhookId), change: { url, ...change } },
        });
        onChange();
        return openable(changed, call, (webhook) => ({ webhook: shown(webhook) }));
      },
    }),
    rotateWebhookSecret: operation({
      parse: ({ webhookId, overlapSeconds = secretOverlapS.default }) =>
        parsed(checkSecretOverlap(overlapSeconds), () => ({ webhookId, overlapSeconds })),
      run: async ({ webhookId, overlapSeconds }, call) => {
        const sealedSecret = keyRing.seal(newWebhookSecret(), webhookId);
        const previousEndsAtS = nowS() + overlapSeconds;
        const rotated = await call.execute({
          ...{ kind: 'RotateWebhookSecret', ...nameOf(call, webhookId), sealedSecret, previousEndsAtS },
        });
        return issued(rotated, call);
      },
    }),
    deleteWebhook: operation({
      parse: parseId,
      run: async (webhookId, call) => {
        await deleteWebhook(call.execute, nameOf(call, webhookId), call.executeNext);
        onChange();
        return {};
      },
    }),
    testWebhook: operation({
      parse: parseId,
      run: (webhookId, call) => test(nameOf(call, webhookId), call),
    }),
    listDeliveries: operation({
      parse: (request, principal) => {
        const violations = [...paging.check(request, principal), ...checkDeliveryStatus(request.status)];
        return parsed(violations, () => ({ page: paging.query(request, principal), request }));
      },
      run: async ({ page, request }, call) => {
        const status = deliveryStatusOf(request.status);
        const name = nameOf(call, request.webhookId);
        const found = await call.execute({ kind: 'ListDeliveries', ...name, status, page });
        const message = (delivery: StoredDelivery) => deliveryMessage(delivery, idKey, timestamp);
        const nextPageToken = paging.token(found, request, call.principal);
        return { deliveries: found.items.map(message), nextPageToken };
      },
    }),
    redeliver: operation({
      parse: ({ webhookId, sequence, since }) =>
        parsed(checkWhich(sequence, since), () => ({
          webhookId,
          which:
            sequence === undefined
              ? { sinceMs: instantOf(since ?? '') ?? 0 }
              : { sequence: Number(sequence) },
        })),
      run: async ({ webhookId, which }, call) => {
        const name = nameOf(call, webhookId);
        const asked = { ...name, which, nowMs: clock.nowMs() };
        // By owner too: the id may be another's, who is to notice nothing.
        const place = `${name.owner ?? 'internal'} ${webhookId}`;
        const count = await withinLimit(redeliveries, place, call, ({ execute, executeNext }) =>
          redeliver(execute, asked, executeNext),
        );
        onChange();
        return { count };
      },
    }),
  });
}

const parseId = ({ webhookId }: { readonly webhookId: string }) => parsed([], () => webhookId);

/** The filter of checked words. */
const filterOf = (words: readonly string[]) =>
  words.length === 0 || words.includes(everyType) ? undefined : typesIn(words);

function checkStatus(status: Webhook_Status): Violation[] {
  if (status === Webhook_Status.STATUS_UNSPECIFIED || statusOf(status) !== undefined) return [];
  return [{ field: 'status', rule: `must be ${webhookStatuses.join(' or ')}` }];
}

/** The status of a request; undefined for none. */
function statusOf(status: Webhook_Status): WebhookStatus | undefined {
  return webhookStatuses.find((known) => Webhook_Status[known] === status);
}

function checkDeliveryStatus(status: Delivery_Status): Violation[] {
  if (status === Delivery_Status.STATUS_UNSPECIFIED || deliveryStatusOf(status) !== undefined) return [];
  return [{ field: 'status', rule: `must be ${deliveryStatuses.join(' or ')}` }];
}

/** The status that a filter names; undefined for all. */
function deliveryStatusOf(status: Delivery_Status): DeliveryStatus | undefined {
  return deliveryStatuses.find((known) => Delivery_Status[known] === status);
}

/** Checks which events a redeliver call selects. */
function checkWhich(sequence: bigint | undefined, since: string | undefined): Violation[] {
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

type ToTimestamp = WebhookDependencies['timestamp'];

function webhookMessage(
  webhook: StoredWebhook,
  url: string,
  nowS: number,
  timestamp: ToTimestamp,
): MessageInitShape<typeof WebhookSchema> {
  const { webhookId, description, caller, eventTypes, status, disabledWhy } = webhook;
  const { createdAtS, failingSinceS, previousEndsAtS } = webhook;
  const isPreviousGood = previousEndsAtS !== null && previousEndsAtS > nowS;
  return {
    ...{ webhookId, url, description, caller },
    eventTypes: [...(eventTypes ?? [everyType])],
    status: Webhook_Status[status],
    createdAt: timestamp(createdAtS * 1_000),
    ...(disabledWhy !== null && { disabledReason: disabledWhy }),
    ...(failingSinceS !== null && { failingSince: timestamp(failingSinceS * 1_000) }),
    ...(isPreviousGood && { previousSecretExpiresAt: timestamp(previousEndsAtS * 1_000) }),
  };
}

function deliveryMessage(
  delivery: StoredDelivery,
  idKey: Uint8Array,
  timestamp: ToTimestamp,
): MessageInitShape<typeof DeliverySchema> {
  const { sequence, type, status, attempts, lastAttemptAtMs, nextAttemptAtMs } = delivery;
  const { httpStatus, answer, error } = delivery;
  return {
    eventId: eventId(idKey, delivery),
    sequence: BigInt(sequence),
    type,
    status: Delivery_Status[status],
    attempts,
    ...(lastAttemptAtMs !== null && { lastAttemptAt: timestamp(lastAttemptAtMs) }),
    ...(nextAttemptAtMs !== null && { nextAttemptAt: timestamp(nextAttemptAtMs) }),
    ...answerFields({ httpStatus, answer, error }),
  };
}
