import type { AdminService } from '../../../gen/artseal/v1/admin_pb.ts';
import { Webhook_Status } from '../../../gen/artseal/v1/webhook_pb.ts';
import { checkReason, checkReasoned } from '../../domain/audit-entry.ts';
import { webhookStatuses } from '../../domain/webhook.ts';
import type { StoredWebhook } from '../../store/webhook-commands.ts';
import { deleteWebhook } from '../../store/webhook-requests.ts';
import { actorOf, type Call, type Operations } from '../operation.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { checkRequiredWord, checkWord, wordOf } from './enum-words.ts';
import { callerNamed } from './event-service.ts';
import { listing } from './paging.ts';
import { checkWhich, createRedelivery } from './webhook-deliveries.ts';
import { webhookMessage } from './webhook-service.ts';

/** The operations of AdminService on webhook endpoints. */
export function createWebhookOperations(
  dependencies: ServiceDependencies,
): Pick<
  Operations<typeof AdminService>,
  'listAllWebhooks' | 'setWebhookStatus' | 'removeWebhook' | 'redeliverEvents'
> {
  const { clock, timestamp, paging, onWebhookChange } = dependencies;
  const redeliver = createRedelivery(dependencies);

  const shown = (webhook: StoredWebhook) =>
    webhookMessage(webhook, webhook.origin, Math.floor(clock.nowMs() / 1_000), timestamp);

  /** The endpoint that a call changes, of any caller. */
  const named = (call: Call, { webhookId, reason }: { webhookId: string; reason: string }) => {
    return { webhookId, owner: undefined, by: actorOf(call, clock, reason) };
  };

  return {
    listAllWebhooks: listing(paging, {
      check: ({ status }) => checkWord('status', webhookStatuses, Webhook_Status, status),
      find: async ({ platform, status: number, failing: isFailing }, page, { execute }) => {
        const owner = platform === '' ? undefined : await callerNamed(platform, execute);
        const status = wordOf(webhookStatuses, Webhook_Status, number);
        return execute({ kind: 'ListWebhooks', owner, status, isFailing, page });
      },
      respond: ({ items }) => ({ webhooks: items.map(shown) }),
    }),
    setWebhookStatus: {
      check: ({ status, reason }) => [
        ...checkRequiredWord('status', webhookStatuses, Webhook_Status, status),
        ...checkReason(reason),
      ],
      run: async (request, call) => {
        const status = wordOf(webhookStatuses, Webhook_Status, request.status);
        const change = { kind: 'ChangeWebhook', ...named(call, request), change: { status } } as const;
        const changed = await call.execute(change);
        onWebhookChange();
        return { webhook: shown(changed) };
      },
    },
    removeWebhook: {
      check: checkReasoned,
      run: async (request, call) => {
        await deleteWebhook(call.execute, named(call, request), call.executeNext);
        onWebhookChange();
        return {};
      },
    },
    redeliverEvents: {
      check: (request) => [...checkWhich(request), ...checkReason(request.reason)],
      run: (request, call) => redeliver(named(call, request), request, call),
    },
  };
}
