import { type EventMessageDependencies, eventMessage } from '../api/services/event-message.ts';
import { createCalendar } from '../domain/calendar.ts';
import { ApiError } from '../domain/reason.ts';
import type { EventPage, EventWithCaller } from '../store/event-commands.ts';
import type { Execute } from '../store/store.ts';
import { type Command, UsageError, type Words } from './command.ts';
import { readInstant } from './instant.ts';
import { firstOf, readWhole } from './limit.ts';
import { withRegistry } from './registry.ts';

/** `artseal events` */
export const events: Command = {
  usage: 'events [--platform NAME] [--since DATE|DURATION] [--after N] [--limit N] [--json]',
  summary: 'show what platforms are told of: the events of their feed and their webhooks',
  details: [
    'oldest first, of the 30 days that they are kept for. Each has its position among all events, and behind # its sequence',
    'among those of its platform.',
    '--platform  those of one platform or internal system alone.',
    '--since     begins with those of 2026-11-21, of 2026-11-21T09:15:00+08:00, or of the last 90m, 12h or 7d.',
    '--after     begins behind a position, with --platform behind a sequence.',
    '--limit     ends behind so many.',
    'artseal webhooks deliveries shows what became of them at an endpoint.',
  ],
  run: async (words, terminal) => {
    const limit = readWhole(words, 'limit', 1);
    const after = readWhole(words, 'after', 0);
    if (after !== undefined && words.text('since') !== undefined)
      throw new UsageError('takes one of --since, --after');
    return withRegistry(terminal, async ({ store, execute }, { timeZone }) => {
      const nowS = Math.floor(Date.now() / 1_000);
      const sinceS = readInstant(words, 'since', 'BEFORE', { timeZone, nowS });
      const order = await orderOf(execute, words);
      const from = sinceS === undefined ? after : await placeBefore(order, sinceS * 1_000);
      const { timestamp } = createCalendar(timeZone);
      const making = { idKey: store.keyFor('event ids'), timestamp };
      for await (const event of firstOf(behind(order, from), limit)) {
        const told = words.has('json')
          ? JSON.stringify(shown(event, making))
          : line(event, timestamp(event.atMs));
        terminal.print(told);
      }
    });
  },
};

/** The events that a command line asks for, in the order of their places. */
interface EventOrder {
  /** A page of those behind a place; from the oldest that is kept where that is undefined. */
  read(after: number | undefined): Promise<EventPage>;
  placeOf(event: EventWithCaller): number;
}

/** The order of all events, or of those of one caller. */
async function orderOf(execute: Execute, words: Words): Promise<EventOrder> {
  const name = words.text('platform');
  if (name === undefined)
    return {
      read: (after) => execute({ kind: 'ReadAllEvents', after }),
      placeOf: ({ position }) => position,
    };
  const { callerId } = await execute({ kind: 'FindCaller', name });
  return {
    read: (after) => execute({ kind: 'ReadEvents', callerId, after }),
    placeOf: ({ sequence }) => sequence,
  };
}

async function* behind({ read }: EventOrder, after: number | undefined): AsyncGenerator<EventWithCaller> {
  let page = await read(after);
  while (page.events.length > 0) {
    yield* page.events;
    page = await read(page.next);
  }
}

/** The place behind which the events of `sinceMs` and later are, found by halves; undefined where all are. */
async function placeBefore(order: EventOrder, sinceMs: number): Promise<number | undefined> {
  const [oldest] = (await order.read(undefined)).events;
  if (oldest === undefined || oldest.atMs >= sinceMs) return undefined;
  /** Whether an event behind the place is too early. */
  const isEarly = async (place: number) => {
    const [event] = (await pageOrNone(order, place))?.events ?? [];
    return event !== undefined && event.atMs < sinceMs;
  };
  // Through `low` all are too early.
  let low = order.placeOf(oldest);
  let step = 1;
  while (await isEarly(low + step - 1)) {
    low += step;
    step *= 2;
  }
  let high = low + step - 1;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (await isEarly(middle)) low = middle + 1;
    else high = middle;
  }
  return high;
}

/** A page of events behind a place; undefined where no event has come to it yet. */
async function pageOrNone({ read }: EventOrder, place: number): Promise<EventPage | undefined> {
  try {
    return await read(place);
  } catch (error) {
    if (error instanceof ApiError && error.reason === 'VALIDATION_FAILED') return undefined;
    throw error;
  }
}

/** An event as its caller is told of it, and its place among all. */
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
