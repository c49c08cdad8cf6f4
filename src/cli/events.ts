import { type EventMessageDependencies, eventMessage } from '../api/services/event-message.ts';
import { parseCount, wholeNumber } from '../config/values.ts';
import { ApiError } from '../domain/reason.ts';
import type { EventPage, EventWithCaller } from '../store/event-commands.ts';
import type { Execute } from '../store/store.ts';
import { type Command, firstOf, readFlag, readInstant, UsageError, type Words } from './command.ts';
import { withRegistry } from './session.ts';

/** `artseal events` */
export const events: Command = {
  usage: 'events [--platform NAME] [--since DATE|DURATION] [--after N] [--limit N] [--json]',
  summary: 'list the events of the feed and the webhooks',
  details: [
    'Lists the events of the last 30 days, the oldest first. Each line has the position among all events and, after #, the',
    'sequence among the events of the platform.',
    '--platform  lists the events of one platform or internal system.',
    '--since     begins at a day (2026-11-21), a time (2026-11-21T09:15:00+08:00) or a duration ago (90m, 12h, 7d).',
    '--after     begins after a position; with --platform, after a sequence.',
    '--limit     lists at most so many.',
    'artseal webhooks deliveries lists their deliveries to a webhook.',
  ],
  run: async (words, terminal) => {
    const limit = readFlag(words, 'limit', parseCount);
    const after = readFlag(words, 'after', wholeNumber(0, Number.MAX_SAFE_INTEGER));
    if (after !== undefined && words.text('since') !== undefined)
      throw new UsageError('takes one of --since, --after');
    return withRegistry(words, terminal, async ({ store, execute, config, calendar, show }) => {
      const sinceS = readInstant(words, 'since', 'BEFORE', config.timeZone);
      const order = await orderOf(execute, words);
      const from = sinceS === undefined ? after : await cursorBefore(order, sinceS * 1_000);
      const { timestamp } = calendar;
      const making = { idKey: store.keyFor('event ids'), timestamp };
      for await (const event of firstOf(eventsAfter(order, from), limit))
        show(shown(event, making), line(event, timestamp(event.atMs)));
    });
  },
};

/** The events that a command line selects, ordered by cursor. */
interface EventOrder {
  /** Reads a page of the events after a cursor; from the oldest one if that is undefined. */
  read(after: number | undefined): Promise<EventPage>;
  cursorOf(event: EventWithCaller): number;
}

/** All events, or those of one caller. */
async function orderOf(execute: Execute, words: Words): Promise<EventOrder> {
  const name = words.text('platform');
  if (name === undefined)
    return {
      read: (after) => execute({ kind: 'ReadAllEvents', after }),
      cursorOf: ({ position }) => position,
    };
  const { callerId } = await execute({ kind: 'FindCaller', name });
  return {
    read: (after) => execute({ kind: 'ReadEvents', callerId, after }),
    cursorOf: ({ sequence }) => sequence,
  };
}

async function* eventsAfter(
  { read }: EventOrder,
  after: number | undefined,
): AsyncGenerator<EventWithCaller> {
  let page = await read(after);
  while (page.events.length > 0) {
    yield* page.events;
    page = await read(page.next);
  }
}

/** The cursor after which the events since `sinceMs` follow, by binary search; undefined if all events follow. */
async function cursorBefore(order: EventOrder, sinceMs: number): Promise<number | undefined> {
  const [oldest] = (await order.read(undefined)).events;
  if (oldest === undefined || oldest.atMs >= sinceMs) return undefined;
  /** Whether the event after the cursor is too early. */
  const isEarly = async (cursor: number) => {
    const [event] = (await pageOrNone(order, cursor))?.events ?? [];
    return event !== undefined && event.atMs < sinceMs;
  };
  // All events up to `low` are too early, and no event follows `high`.
  let low = order.cursorOf(oldest);
  let high = Number.MAX_SAFE_INTEGER;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (await isEarly(middle)) low = middle + 1;
    else high = middle;
  }
  return high;
}

/** Reads the events after a cursor; undefined if no event has reached it yet. */
async function pageOrNone({ read }: EventOrder, cursor: number): Promise<EventPage | undefined> {
  try {
    return await read(cursor);
  } catch (error) {
    if (error instanceof ApiError && error.reason === 'VALIDATION_FAILED') return undefined;
    throw error;
  }
}

/** An event as its caller receives it, with its position among all events. */
function shown(event: EventWithCaller, making: EventMessageDependencies) {
  const { caller: platform, position, sequence } = event;
  return { position, platform, ...eventMessage(event, making), sequence };
}

function line({ caller: platform, position, sequence, ...event }: EventWithCaller, at: string): string {
  const { type, escrowId, filingNo, state, keyId, month, percent, webhookId } = event;
  const part = percent && `${percent} %`;
  const subject = [filingNo, escrowId, state, keyId, month, part, webhookId].filter((word) => word).join(' ');
  return [String(position).padStart(8), at, type.padEnd(22), platform, `#${sequence}`, subject].join('  ');
}
