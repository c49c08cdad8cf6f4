import { type EventMessageDependencies, eventMessage } from '../api/services/event-message.ts';
import { parseCount, wholeNumber } from '../config/values.ts';
import type { EventPage, EventWithCaller } from '../store/event-commands.ts';
import { type Command, firstOf, readFlag, readInstant, UsageError } from './command.ts';
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
      const name = words.text('platform');
      const callerId =
        name === undefined ? undefined : (await execute({ kind: 'FindCaller', name })).callerId;
      const read: Read = (cursor) =>
        callerId === undefined
          ? execute({ kind: 'ReadAllEvents', after: cursor })
          : execute({ kind: 'ReadEvents', callerId, after: cursor });
      const sinceMs = sinceS === undefined ? 0 : sinceS * 1_000;
      const { timestamp } = calendar;
      const making = { idKey: store.keyFor('event ids'), timestamp };
      for await (const event of firstOf(eventsAfter(read, after, sinceMs), limit))
        show(shown(event, making), line(event, timestamp(event.atMs)));
    });
  },
};

/** Reads a page of the selected events after a cursor; from the oldest one if that is undefined. */
type Read = (after: number | undefined) => Promise<EventPage>;

/** Yields the events after a cursor, beginning with the first one since `sinceMs`. */
async function* eventsAfter(
  read: Read,
  after: number | undefined,
  sinceMs: number,
): AsyncGenerator<EventWithCaller> {
  let page = await read(after);
  let hasBegun = false;
  while (page.events.length > 0) {
    for (const event of page.events) {
      hasBegun ||= event.atMs >= sinceMs;
      if (hasBegun) yield event;
    }
    page = await read(page.next);
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
