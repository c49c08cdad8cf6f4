import {
  AdminService,
  type ListAllEventsResponse_Entry as Entry,
  type ListAllEventsRequest,
  type ListAllEventsResponse,
} from '../../gen/artseal/v1/admin_pb.ts';
import { parseCount, wholeNumber } from '../config/values.ts';
import { type Command, firstOf, readFlag, UsageError } from './command.ts';
import { type CallSession, calls, present, sinceOf } from './session.ts';

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
    '--limit     lists at most N events.',
    'artseal webhooks deliveries lists their deliveries to a webhook.',
  ],
  ...calls(async (session) => {
    const { words, client } = session;
    const limit = readFlag(words, 'limit', parseCount);
    const after = readFlag(words, 'after', wholeNumber(0, Number.MAX_SAFE_INTEGER));
    const since = sinceOf(session);
    if (after !== undefined && since !== undefined) throw new UsageError('takes one of --since, --after');
    const platform = words.text('platform') ?? '';
    const start = after === undefined ? { since: since ?? '' } : { after: BigInt(after) };
    const read = (from: From) => client(AdminService).listAllEvents({ platform, ...from });
    for await (const entry of firstOf(entriesFrom(read, start), limit)) show(entry, session);
  }),
};

/** Where a page begins. */
type From = Partial<Pick<ListAllEventsRequest, 'after' | 'since'>>;

/** Yields the events from a start on, which are read page by page. */
async function* entriesFrom(
  read: (from: From) => Promise<ListAllEventsResponse>,
  start: From,
): AsyncGenerator<Entry> {
  let page = await read(start);
  while (page.entries.length > 0) {
    yield* page.entries;
    page = await read({ after: page.next });
  }
}

/** Shows an event as its caller receives it, with its position among all events. */
function show(entry: Entry, session: CallSession): void {
  const { $typeName: _, ...event } = present(entry.event);
  const { type, at, escrowId, filingNo, state, keyId, month, percent, webhookId } = event;
  const { platform } = entry;
  const [position, sequence] = [Number(entry.position), Number(event.sequence)];
  const part = percent && `${percent} %`;
  const subject = [filingNo, escrowId, state, keyId, month, part, webhookId].filter((word) => word).join(' ');
  const columns = [String(position).padStart(8), at, type.padEnd(22), platform, `#${sequence}`, subject];
  session.show({ position, platform, ...event, sequence }, columns.join('  '));
}
