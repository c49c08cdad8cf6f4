import { AdminService } from '../../gen/artseal/v1/admin_pb.ts';
import {
  type Delivery,
  Delivery_Status,
  DeliverySchema,
  type Webhook,
  Webhook_Status,
  WebhookService,
} from '../../gen/artseal/v1/webhook_pb.ts';
import { writeMessage } from '../api/message-json.ts';
import { oneOf } from '../config/settings.ts';
import { parseCount } from '../config/values.ts';
import { deliveryStatuses, type WebhookStatus, webhookStatuses } from '../domain/webhook.ts';
import { type Action, type CommandGroup, fieldLines, firstOf, readFlag, UsageError } from './command.ts';
import { type CallSession, calls, itemsOf, present, sinceOf, wordIn } from './session.ts';

/** For calls that work through all deliveries of a webhook. */
const withoutTimeout = { timeoutMs: 0 };

const list: Action = {
  usage: `webhooks list [--platform NAME] [--status ${webhookStatuses.join('|')}] [--failing] [--json]`,
  details: [
    'Lists webhooks, the oldest first. --failing lists enabled ones whose last attempt failed, and since when.',
  ],
  ...calls(({ words, client, showAll }) => {
    const filter = {
      platform: words.text('platform') ?? '',
      status: Webhook_Status[readFlag(words, 'status', oneOf(webhookStatuses)) ?? 'STATUS_UNSPECIFIED'],
      failing: words.has('failing'),
    };
    return showAll('webhooks', (page) => client(AdminService).listAllWebhooks({ ...filter, ...page }), show);
  }),
};

const showOne: Action = {
  usage: 'webhooks show WEBHOOK_ID [--json]',
  details: ['Shows a webhook.'],
  ...calls(async (session) => {
    const { webhook } = await session.client(WebhookService).getWebhook(named(session));
    const found = shown(present(webhook));
    session.show(found, ...fieldLines(found, 24));
  }),
};

function setting(word: string, status: WebhookStatus, detail: string): Action {
  return {
    usage: `webhooks ${word} WEBHOOK_ID [--reason TEXT] [--json]`,
    details: [detail],
    ...calls(async (session) => {
      const { client, reason } = session;
      const request = { ...named(session), status: Webhook_Status[status], reason };
      show(present((await client(AdminService).setWebhookStatus(request)).webhook), session);
    }),
  };
}

const remove: Action = {
  usage: 'webhooks delete WEBHOOK_ID [--reason TEXT] [--json]',
  details: ['Deletes a webhook for good, with its secret and its deliveries.'],
  ...calls(async (session) => {
    const { client, reason, show } = session;
    const name = named(session);
    await client(AdminService).removeWebhook({ ...name, reason }, withoutTimeout);
    show(name, `deleted ${name.webhookId}`);
  }),
};

const deliveries: Action = {
  usage: `webhooks deliveries WEBHOOK_ID [--status ${deliveryStatuses.join('|')}] [--limit N] [--json]`,
  details: [
    'Lists the deliveries of the last 30 days, the newest event first: status, attempts, and the first 512 bytes of the last',
    'response. WAITING waits for an earlier event of the same resource. Events that are not queued yet are not listed.',
  ],
  ...calls(async (session) => {
    const { words, client } = session;
    const status =
      Delivery_Status[readFlag(words, 'status', oneOf(deliveryStatuses)) ?? 'STATUS_UNSPECIFIED'];
    const limit = readFlag(words, 'limit', parseCount);
    const filter = { ...named(session), status };
    const all = itemsOf<'deliveries', Delivery>('deliveries', (page) =>
      client(WebhookService).listDeliveries({ ...filter, ...page }),
    );
    for await (const delivery of firstOf(all, limit))
      session.show(writeMessage(DeliverySchema, delivery), deliveryLine(delivery));
  }),
};

const redeliver: Action = {
  usage: 'webhooks redeliver WEBHOOK_ID [--sequence N] [--since DATE|DURATION] [--reason TEXT] [--json]',
  details: [
    'Sends events again to an enabled webhook: the event with that sequence, or all undelivered ones since a day (2026-11-21),',
    'a time (2026-11-21T09:15:00+08:00) or a duration (90m, 12h, 7d).',
  ],
  ...calls(async (session) => {
    const { words, client, reason, show } = session;
    const sequence = readFlag(words, 'sequence', parseCount);
    const since = sinceOf(session);
    if ((sequence === undefined) === (since === undefined))
      throw new UsageError('needs either --sequence or --since');
    const selected = sequence === undefined ? { since: since ?? '' } : { sequence: BigInt(sequence) };
    const request = { ...named(session), ...selected, reason };
    const { count } = await client(AdminService).redeliverEvents(request, withoutTimeout);
    show({ count }, `events to send again: ${count}`);
  }),
};

/** `artseal webhooks` */
export const webhooks: CommandGroup = {
  summary: 'list, change and delete webhooks, list their deliveries, send events again',
  actions: [
    list,
    showOne,
    setting('disable', 'DISABLED', 'Sends nothing more to the webhook. Its pending deliveries fail.'),
    setting(
      'enable',
      'ENABLED',
      'Sends new events to the webhook. To send missed ones, use redeliver --since.',
    ),
    remove,
    deliveries,
    redeliver,
  ],
  details: [
    'WEBHOOK_ID is the webhookId (wh_…). Platforms create webhooks, by REST or WebhookService. Only the origin of a URL is shown,',
    'since the rest may hold a secret. A change is effective when the command returns. artseal audit-log lists who changed what,',
    'and the --reason. With --url, show and deliveries need the scope read.',
  ],
};

/** The webhook of the command line, of any owner. */
const named = ({ words }: Pick<CallSession, 'words'>) => ({ webhookId: words.required('WEBHOOK_ID') });

function shown(webhook: Webhook) {
  const { webhookId, caller, url, eventTypes, description, createdAt } = webhook;
  const { disabledReason, failingSince, previousSecretExpiresAt } = webhook;
  return {
    // The service shows a local operator the whole URL.
    ...{ webhookId, caller, origin: new URL(url).origin, eventTypes, description },
    status: wordIn(Webhook_Status, webhook.status),
    ...{ disabledReason, createdAt, failingSince, previousSecretExpiresAt },
  };
}

function show(found: Webhook, session: CallSession): void {
  const webhook = shown(found);
  const { webhookId, status, caller, origin, disabledReason, failingSince } = webhook;
  const columns = [webhookId, status.padEnd(8), caller, origin];
  if (disabledReason !== undefined) columns.push(`disabled: ${disabledReason}`);
  else if (failingSince !== undefined) columns.push(`failing since ${failingSince}`);
  session.show(webhook, columns.join('  '));
}

function deliveryLine(delivery: Delivery): string {
  const { sequence, type, attempts, lastAttemptAt, nextAttemptAt, httpStatus, answer, error } = delivery;
  const notes: string[] = [];
  if (error !== undefined) notes.push(error);
  // JSON keeps the response on one line.
  if (error !== undefined && answer !== undefined) notes.push(`response ${JSON.stringify(answer)}`);
  if (nextAttemptAt !== undefined) notes.push(`next attempt at ${nextAttemptAt}`);
  const columns = [
    String(sequence).padStart(8),
    type.padEnd(22),
    wordIn(Delivery_Status, delivery.status).padEnd(9),
    `${attempts} sent`.padStart(7),
    lastAttemptAt ?? '',
    String(httpStatus ?? '').padStart(3),
    notes.join('; '),
  ];
  return columns.join('  ').trimEnd();
}
