import { type Calendar, createCalendar } from '../domain/calendar.ts';
import { eventId } from '../domain/event.ts';
import { deliveryStatuses, type WebhookStatus, webhookStatuses } from '../domain/webhook.ts';
import { allOf } from '../store/paging.ts';
import { redeliver as redeliverAll } from '../store/redelivery.ts';
import type { StoredDelivery, StoredWebhook } from '../store/webhook-commands.ts';
import { deleteWebhook } from '../store/webhook-deletion.ts';
import { localActor } from './actor.ts';
import { oneOf } from './arguments.ts';
import { type Action, type CommandGroup, type Terminal, UsageError, type Words } from './command.ts';
import { readInstant } from './instant.ts';
import { firstOf, readWhole } from './limit.ts';
import { changeRegistry, withRegistry } from './registry.ts';

const list: Action = {
  usage: `webhooks list [--platform NAME] [--status ${webhookStatuses.join('|')}] [--failing] [--json]`,
  details: [
    'oldest first; --failing shows those alone that are enabled and took nothing at the last attempt, and since when.',
  ],
  run: async (words, terminal) => {
    const status = oneOf(words, 'status', webhookStatuses);
    return withRegistry(terminal, async ({ execute }, { timeZone }) => {
      const calendar = createCalendar(timeZone);
      const name = words.text('platform');
      const owner = name === undefined ? undefined : (await execute({ kind: 'FindCaller', name })).callerId;
      for await (const found of allOf((page) => execute({ kind: 'ListWebhooks', owner, page }))) {
        if (status !== undefined && found.status !== status) continue;
        if (words.has('failing') && !isFailing(found)) continue;
        show(found, words, terminal, calendar);
      }
    });
  },
};

const showOne: Action = {
  usage: 'webhooks show WEBHOOK_ID [--json]',
  details: [],
  run: (words, terminal) =>
    withRegistry(terminal, async ({ execute }, { timeZone }) => {
      const found = await execute({ kind: 'FindWebhook', ...named(words) });
      const webhook = shown(found, createCalendar(timeZone));
      if (words.has('json')) return terminal.print(JSON.stringify(webhook));
      for (const [label, value] of Object.entries(webhook))
        if (value !== undefined) terminal.print(`${label.padEnd(24)} ${value}`);
    }),
};

/** An action that gives an endpoint a status. */
function setting(word: string, status: WebhookStatus, ...details: readonly string[]): Action {
  return {
    usage: `webhooks ${word} WEBHOOK_ID [--reason TEXT] [--json]`,
    details,
    run: (words, terminal) =>
      changeRegistry(terminal, async ({ execute }, { timeZone }) => {
        const by = localActor(words, terminal);
        const change = { status };
        const changed = await execute({ kind: 'ChangeWebhook', by, ...named(words), change });
        show(changed, words, terminal, createCalendar(timeZone));
      }),
  };
}

const remove: Action = {
  usage: 'webhooks delete WEBHOOK_ID [--reason TEXT]',
  details: ['deletes it for good, with its secret and its deliveries.'],
  run: (words, terminal) =>
    changeRegistry(terminal, async ({ execute }) => {
      const by = localActor(words, terminal);
      await deleteWebhook(execute, { by, ...named(words) });
      terminal.print(`deleted ${words.required('WEBHOOK_ID')}`);
    }),
};

const deliveries: Action = {
  usage: `webhooks deliveries WEBHOOK_ID [--status ${deliveryStatuses.join('|')}] [--limit N] [--json]`,
  details: [
    'newest event first, of the 30 days that they are kept for: what became of each, how often it was sent, and the first 512',
    'bytes of the last answer. WAITING waits for an earlier event of the same resource. What was not taken up yet is not listed.',
  ],
  run: async (words, terminal) => {
    const status = oneOf(words, 'status', deliveryStatuses);
    const limit = readWhole(words, 'limit', 1);
    return withRegistry(terminal, async ({ store, execute }, { timeZone }) => {
      const { callerId } = await execute({ kind: 'FindWebhook', ...named(words) });
      const [idKey, calendar] = [store.keyFor('event ids'), createCalendar(timeZone)];
      const all = allOf((page) => execute({ kind: 'ListDeliveries', ...named(words), status, page }));
      for await (const found of firstOf(all, limit)) {
        const id = eventId(idKey, { callerId, sequence: found.sequence });
        const delivery = { eventId: id, ...deliveryShown(found, calendar) };
        terminal.print(words.has('json') ? JSON.stringify(delivery) : deliveryLine(delivery));
      }
    });
  },
};

const redeliver: Action = {
  usage: 'webhooks redeliver WEBHOOK_ID [--sequence N] [--since DATE|DURATION] [--reason TEXT] [--json]',
  details: [
    'sends again, to a webhook that is enabled: either the event with that sequence, whatever became of it, or each that did not',
    'arrive since 2026-11-21, since 2026-11-21T09:15:00+08:00, or in the last 90m, 12h or 7d.',
  ],
  run: async (words, terminal) => {
    const sequence = readWhole(words, 'sequence', 1);
    if ((sequence === undefined) === (words.text('since') === undefined))
      throw new UsageError('needs either --sequence or --since');
    return changeRegistry(terminal, async ({ execute }, { timeZone }) => {
      const [by, nowMs] = [localActor(words, terminal), Date.now()];
      const sinceS = readInstant(words, 'since', 'BEFORE', { timeZone, nowS: Math.floor(nowMs / 1_000) });
      const which = sequence === undefined ? { sinceMs: Number(sinceS) * 1_000 } : { sequence };
      const count = await redeliverAll(execute, { by, ...named(words), which, nowMs });
      terminal.print(words.has('json') ? JSON.stringify({ count }) : `to be sent again: ${count}`);
    });
  },
};

/** `artseal webhooks` */
export const webhooks: CommandGroup = {
  summary: 'see the endpoints that events are sent to, and what became of the events',
  actions: [
    list,
    showOne,
    setting('disable', 'DISABLED', 'sends it nothing more; what is still to be sent to it has failed.'),
    setting(
      'enable',
      'ENABLED',
      'sends it what happens from now on; what it missed, redeliver --since sends.',
    ),
    remove,
    deliveries,
    redeliver,
  ],
  details: [
    'WEBHOOK_ID is the webhookId (wh_…). Platforms make endpoints themselves, over REST or WebhookService. Of a URL the origin is',
    'shown, since the rest may hold a secret. A change is effective when the command returns. artseal audit-log shows who changed what,',
    'and the --reason.',
  ],
};

/** The endpoint that a command line names, whoever it is of. */
const named = (words: Words) => ({ webhookId: words.required('WEBHOOK_ID'), owner: undefined });

const isFailing = ({ status, failingSinceS }: StoredWebhook): boolean =>
  status === 'ENABLED' && failingSinceS !== null;

function shown(found: StoredWebhook, calendar: Calendar) {
  const { webhookId, caller, eventTypes = ['*'], description, status, disabledWhy } = found;
  const at = (atS: number | null) => (atS === null ? undefined : calendar.timestamp(atS * 1_000));
  return {
    ...{ webhookId, caller, origin: found.origin, eventTypes, description, status },
    disabledReason: disabledWhy ?? undefined,
    createdAt: at(found.createdAtS),
    failingSince: at(found.failingSinceS),
    previousSecretExpiresAt: at(isOver(found.previousEndsAtS) ? null : found.previousEndsAtS),
  };
}

const isOver = (endsAtS: number | null): boolean => endsAtS !== null && endsAtS * 1_000 <= Date.now();

function show(found: StoredWebhook, words: Words, { print }: Terminal, calendar: Calendar): void {
  const webhook = shown(found, calendar);
  const { webhookId, status, caller, origin, disabledReason, failingSince } = webhook;
  const columns = [webhookId, status.padEnd(8), caller, origin];
  if (disabledReason !== undefined) columns.push(`disabled: ${disabledReason}`);
  else if (failingSince !== undefined) columns.push(`failing since ${failingSince}`);
  print(words.has('json') ? JSON.stringify(webhook) : columns.join('  '));
}

function deliveryShown(found: StoredDelivery, calendar: Calendar) {
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
  const { sequence, type, status, attempts, lastAttemptAt, nextAttemptAt, httpStatus, answer, error } =
    delivery;
  const notes = [
    ...(error === undefined ? [] : [error]),
    // On one line, whatever an answer consists of.
    ...(error === undefined || answer === undefined ? [] : [`answered ${JSON.stringify(answer)}`]),
    ...(nextAttemptAt === undefined ? [] : [`due at ${nextAttemptAt}`]),
  ];
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
