import { oneOf } from '../config/settings.ts';
import { parseCount } from '../config/values.ts';
import { eventId } from '../domain/event.ts';
import { deliveryStatuses, type WebhookStatus, webhookStatuses } from '../domain/webhook.ts';
import { allOf } from '../store/paging.ts';
import type { StoredDelivery, StoredWebhook } from '../store/webhook-commands.ts';
import { deleteWebhook, redeliver as redeliverAll } from '../store/webhook-requests.ts';
import {
  type Action,
  type CommandGroup,
  fieldLines,
  firstOf,
  readFlag,
  readInstant,
  UsageError,
} from './command.ts';
import { changeRegistry, changes, reads, type Session, withRegistry } from './session.ts';

const list: Action = {
  usage: `webhooks list [--platform NAME] [--status ${webhookStatuses.join('|')}] [--failing] [--json]`,
  details: [
    'Lists webhooks, the oldest first. --failing lists enabled ones whose last attempt failed, and since when.',
  ],
  run: async (words, terminal) => {
    const status = readFlag(words, 'status', oneOf(webhookStatuses));
    return withRegistry(words, terminal, async (session) => {
      const { execute } = session;
      const name = words.text('platform');
      const owner = name === undefined ? undefined : (await execute({ kind: 'FindCaller', name })).callerId;
      for await (const found of allOf((page) => execute({ kind: 'ListWebhooks', owner, page }))) {
        if (status !== undefined && found.status !== status) continue;
        if (words.has('failing') && (found.status !== 'ENABLED' || found.failingSinceS === null)) continue;
        show(found, session);
      }
    });
  },
};

const showOne: Action = {
  usage: 'webhooks show WEBHOOK_ID [--json]',
  details: ['Shows a webhook.'],
  run: reads(async (session) => {
    const webhook = shown(await session.execute({ kind: 'FindWebhook', ...named(session) }), session);
    session.show(webhook, ...fieldLines(webhook, 24));
  }),
};

/** An action that sets the status of a webhook. */
function setting(word: string, status: WebhookStatus, detail: string): Action {
  return {
    usage: `webhooks ${word} WEBHOOK_ID [--reason TEXT] [--json]`,
    details: [detail],
    run: changes(async (session) => {
      const [by, change] = [session.actor(), { status }];
      show(await session.execute({ kind: 'ChangeWebhook', by, ...named(session), change }), session);
    }),
  };
}

const remove: Action = {
  usage: 'webhooks delete WEBHOOK_ID [--reason TEXT]',
  details: ['Deletes a webhook for good, with its secret and its deliveries.'],
  run: changes(async ({ execute, actor, print, words }) => {
    await deleteWebhook(execute, { by: actor(), ...named({ words }) });
    print(`deleted ${words.required('WEBHOOK_ID')}`);
  }),
};

const deliveries: Action = {
  usage: `webhooks deliveries WEBHOOK_ID [--status ${deliveryStatuses.join('|')}] [--limit N] [--json]`,
  details: [
    'Lists the deliveries of the last 30 days, the newest event first: status, attempts, and the first 512 bytes of the last',
    'response. WAITING waits for an earlier event of the same resource. Events that are not claimed yet are not listed.',
  ],
  run: async (words, terminal) => {
    const status = readFlag(words, 'status', oneOf(deliveryStatuses));
    const limit = readFlag(words, 'limit', parseCount);
    return withRegistry(words, terminal, async (session) => {
      const { store, execute } = session;
      const { callerId } = await execute({ kind: 'FindWebhook', ...named(session) });
      const idKey = store.keyFor('event ids');
      const all = allOf((page) => execute({ kind: 'ListDeliveries', ...named(session), status, page }));
      for await (const found of firstOf(all, limit)) {
        const id = eventId(idKey, { callerId, sequence: found.sequence });
        const delivery = { eventId: id, ...deliveryShown(found, session) };
        session.show(delivery, deliveryLine(delivery));
      }
    });
  },
};

const redeliver: Action = {
  usage: 'webhooks redeliver WEBHOOK_ID [--sequence N] [--since DATE|DURATION] [--reason TEXT] [--json]',
  details: [
    'Sends events again to an enabled webhook: the event with that sequence, or all undelivered ones since a day (2026-11-21),',
    'a time (2026-11-21T09:15:00+08:00) or a duration (90m, 12h, 7d).',
  ],
  run: async (words, terminal) => {
    const sequence = readFlag(words, 'sequence', parseCount);
    if ((sequence === undefined) === (words.text('since') === undefined))
      throw new UsageError('needs either --sequence or --since');
    return changeRegistry(words, terminal, async ({ execute, config, actor, show }) => {
      const [by, nowMs] = [actor(), Date.now()];
      const sinceS = readInstant(words, 'since', 'BEFORE', config.timeZone);
      const which = sequence === undefined ? { sinceMs: Number(sinceS) * 1_000 } : { sequence };
      const count = await redeliverAll(execute, { by, ...named({ words }), which, nowMs });
      show({ count }, `events to send again: ${count}`);
    });
  },
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
    'and the --reason.',
  ],
};

/** The webhook of the command line, of any owner. */
const named = ({ words }: Pick<Session, 'words'>) => ({
  webhookId: words.required('WEBHOOK_ID'),
  owner: undefined,
});

function shown(found: StoredWebhook, { timestamp }: Session) {
  const { webhookId, caller, origin, eventTypes = ['*'], description, status, disabledWhy } = found;
  const { previousEndsAtS } = found;
  const at = (atS: number | null) => (atS === null ? undefined : timestamp(atS));
  const isOver = previousEndsAtS !== null && previousEndsAtS * 1_000 <= Date.now();
  return {
    ...{ webhookId, caller, origin, eventTypes, description, status },
    disabledReason: disabledWhy ?? undefined,
    createdAt: at(found.createdAtS),
    failingSince: at(found.failingSinceS),
    previousSecretExpiresAt: at(isOver ? null : previousEndsAtS),
  };
}

function show(found: StoredWebhook, session: Session): void {
  const webhook = shown(found, session);
  const { webhookId, status, caller, origin, disabledReason, failingSince } = webhook;
  const columns = [webhookId, status.padEnd(8), caller, origin];
  if (disabledReason !== undefined) columns.push(`disabled: ${disabledReason}`);
  else if (failingSince !== undefined) columns.push(`failing since ${failingSince}`);
  session.show(webhook, columns.join('  '));
}

function deliveryShown(found: StoredDelivery, { calendar }: Session) {
  const { sequence, type, status, attempts, httpStatus, answer, error } = found;
  const at = (atMs: number | null) => (atMs === null ? undefined : calendar.timestamp(atMs));
  return {
    ...{ sequence, type, status, attempts },
    lastAttemptAt: at(found.lastAttemptAtMs),
    nextAttemptAt: at(found.nextAttemptAtMs),
    httpStatus: httpStatus ?? undefined,
    answer: answer === null ? undefined : new TextDecoder().decode(answer),
    error: error ?? undefined,
  };
}

function deliveryLine(delivery: ReturnType<typeof deliveryShown>): string {
  const { sequence, type, status, attempts, lastAttemptAt, nextAttemptAt, httpStatus } = delivery;
  const { answer, error } = delivery;
  const notes: string[] = [];
  if (error !== undefined) notes.push(error);
  // JSON keeps the response on one line.
  if (error !== undefined && answer !== undefined) notes.push(`response ${JSON.stringify(answer)}`);
  if (nextAttemptAt !== undefined) notes.push(`next attempt at ${nextAttemptAt}`);
  const columns = [
    String(sequence).padStart(8),
    type.padEnd(22),
    status.padEnd(9),
    `${attempts} sent`.padStart(7),
    lastAttemptAt ?? '',
    String(httpStatus ?? '').padStart(3),
    notes.join('; '),
  ];
  return columns.join('  ').trimEnd();
}
