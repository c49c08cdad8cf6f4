import type { MessageInitShape } from '@bufbuild/protobuf';
import { Webhook_Status, type WebhookSchema, WebhookService } from '../../../gen/artseal/v1/webhook_pb.ts';
import { checkRange, type Violation } from '../../domain/violation.ts';
import {
  checkDescription,
  checkEventTypes,
  everyType,
  secretOverlapS,
  webhookStatuses as statusWords,
  typesIn,
} from '../../domain/webhook.ts';
import { newWebhookSecret } from '../../events/webhooks/signature.ts';
import { SecretNotOpened } from '../../keys/key-ring.ts';
import { mintWebhookId } from '../../keys/mint.ts';
import { openUrl, sealUrl } from '../../keys/sealed-secrets.ts';
import type { StoredWebhook } from '../../store/webhook-commands.ts';
import { deleteWebhook } from '../../store/webhook-requests.ts';
import { type Call, callerOf, type Implementation, implement, ownerScope } from '../operation.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { enumWords } from './enum-words.ts';
import { listing } from './paging.ts';
import { changedBy, createDeliveryOperations, nameOf } from './webhook-deliveries.ts';

/** The states of an endpoint. */
export const webhookStatuses = enumWords(statusWords, Webhook_Status);

/** The endpoints in the responses of calls. */
function createEndpointView(dependencies: ServiceDependencies) {
  const { keyRing, onWebhookChange } = dependencies;
  const shown = (webhook: StoredWebhook) => webhookMessage(webhook, openUrl(keyRing, webhook), dependencies);
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
      // A replay returns the endpoint as stored then. Its secrets may have been encrypted with another key since.
      return make(await call.execute({ kind: 'FindWebhook', ...nameOf(call, webhook.webhookId) }));
    }
  }

  return {
    /** An endpoint as a call may see it. Its URL may hold secrets, so a token without the scope `webhook` gets only the origin. */
    readBy: ({ principal }: Call, webhook: StoredWebhook) =>
      principal.kind === 'platform' || principal.scopes.includes('webhook')
        ? shown(webhook)
        : webhookMessage(webhook, webhook.origin, dependencies),
    /** An endpoint after a change. */
    changed: (webhook: StoredWebhook, call: Call) => {
      onWebhookChange();
      return openable(webhook, call, (one) => ({ webhook: shown(one) }));
    },
    /** An endpoint with its stored secret, which an earlier call may have created. */
    issued: (webhook: StoredWebhook, call: Call) => {
      onWebhookChange();
      return openable(webhook, call, (one) => ({ webhook: shown(one), secret: secretOf(one) }));
    },
  };
}

/** The operations of WebhookService. A platform manages its own endpoints, an internal system all of them. */
export function createWebhookService(dependencies: ServiceDependencies): Implementation {
  const { keyRing, clock, nowS, paging, checkTarget, onWebhookChange } = dependencies;
  const { readBy, changed, issued } = createEndpointView(dependencies);
  const checkUrl = (url: string): Violation[] => {
    const rule = checkTarget(url);
    return rule === undefined ? [] : [{ field: 'url', rule }];
  };

  return implement(WebhookService, 'webhook', {
    createWebhook: {
      check: ({ url, eventTypes, description }) => [
        ...checkUrl(url),
        ...checkEventTypes(eventTypes),
        ...checkDescription(description),
      ],
      run: async ({ url, eventTypes, description }, call) => {
        const webhookId = mintWebhookId();
        const sealedSecret = keyRing.seal(newWebhookSecret(), webhookId);
        const sealed = { sealedSecret, ...sealUrl(keyRing, webhookId, url) };
        const given = { eventTypes: filterOf(eventTypes), description };
        const webhook = { ...given, ...sealed, webhookId, createdAtS: nowS() };
        const { callerId: owner } = callerOf(call);
        return issued(await call.execute({ kind: 'AddWebhook', owner, webhook }), call);
      },
    },
    listWebhooks: listing(paging, {
      find: (_, page, call) =>
        call.execute({ kind: 'ListWebhooks', owner: ownerScope(call.principal), page }),
      respond: ({ items }, _, call) => ({ webhooks: items.map((webhook) => readBy(call, webhook)) }),
    }),
    getWebhook: {
      run: async ({ webhookId }, call) => {
        const found = await call.execute({ kind: 'FindWebhook', ...nameOf(call, webhookId) });
        return { webhook: readBy(call, found) };
      },
    },
    updateWebhook: {
      check: ({ url, eventTypes, description = '', status }) => [
        ...(url === undefined ? [] : checkUrl(url)),
        ...checkEventTypes(eventTypes),
        ...checkDescription(description),
        ...webhookStatuses.check('status', status),
      ],
      run: async ({ webhookId, url, eventTypes, description, status }, call) => {
        const change = {
          url: url === undefined ? undefined : sealUrl(keyRing, webhookId, url),
          eventTypes: eventTypes.length === 0 ? undefined : (filterOf(eventTypes) ?? ('ALL' as const)),
          description,
          status: webhookStatuses.of(status),
        };
        const webhook = await call.execute({
          ...{ kind: 'ChangeWebhook', ...changedBy(call, webhookId, clock), change },
        });
        return changed(webhook, call);
      },
    },
    rotateWebhookSecret: {
      check: ({ overlapSeconds = secretOverlapS.default }) =>
        checkRange('overlapSeconds', overlapSeconds, secretOverlapS),
      run: async ({ webhookId, overlapSeconds = secretOverlapS.default }, call) => {
        const sealedSecret = keyRing.seal(newWebhookSecret(), webhookId);
        const previousEndsAtS = nowS() + overlapSeconds;
        const rotated = await call.execute({
          ...{ kind: 'RotateWebhookSecret', ...changedBy(call, webhookId, clock) },
          ...{ sealedSecret, previousEndsAtS },
        });
        return issued(rotated, call);
      },
    },
    deleteWebhook: {
      run: async ({ webhookId }, call) => {
        await deleteWebhook(call.execute, changedBy(call, webhookId, clock), call.executeNext);
        onWebhookChange();
        return {};
      },
    },
    ...createDeliveryOperations(dependencies),
  });
}

/** The filter of checked words. */
const filterOf = (words: readonly string[]) =>
  words.length === 0 || words.includes(everyType) ? undefined : typesIn(words);

/** The message of an endpoint with this URL. */
export function webhookMessage(
  webhook: StoredWebhook,
  url: string,
  { nowS, timestampS }: Pick<ServiceDependencies, 'nowS' | 'timestampS'>,
): MessageInitShape<typeof WebhookSchema> {
  const { webhookId, description, caller, eventTypes, status, disabledReason } = webhook;
  const { createdAtS, failingSinceS, previousEndsAtS } = webhook;
  const isPreviousGood = previousEndsAtS !== null && previousEndsAtS > nowS();
  return {
    ...{ webhookId, url, description, caller },
    eventTypes: [...(eventTypes ?? [everyType])],
    status: Webhook_Status[status],
    createdAt: timestampS(createdAtS),
    ...(disabledReason !== null && { disabledReason }),
    ...(failingSinceS !== null && { failingSince: timestampS(failingSinceS) }),
    ...(isPreviousGood && { previousSecretExpiresAt: timestampS(previousEndsAtS) }),
  };
}
