import {
  AdminService,
  type AuditEntry,
  type ListAllEventsResponse_Entry as Entry,
  type ListAllEventsRequest,
  type ListAllEventsResponse,
  type RequestEntry,
  RequestEntry_Api,
} from '../../gen/artseal/v1/admin_pb.ts';
import { oneOf } from '../config/settings.ts';
import { parseCount, wholeNumber } from '../config/values.ts';
import { utcTimestamp } from '../domain/utc.ts';
import { type Command, firstOf, readFlag, UsageError } from './command.ts';
import { type CallSession, calls, itemsOf, type PageFields, present, sinceOf, wordIn } from './session.ts';

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
    for await (const entry of firstOf(entriesFrom(read, start), limit)) showEvent(entry, session);
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
function showEvent(entry: Entry, session: CallSession): void {
  const { $typeName: _, ...event } = present(entry.event);
  const { type, at, escrowId, filingNo, state, keyId, month, percent, webhookId } = event;
  const { platform } = entry;
  const [position, sequence] = [Number(entry.position), Number(event.sequence)];
  const part = percent && `${percent} %`;
  const subject = [filingNo, escrowId, state, keyId, month, part, webhookId].filter((word) => word).join(' ');
  const columns = [String(position).padStart(8), at, type.padEnd(22), platform, `#${sequence}`, subject];
  session.show({ position, platform, ...event, sequence }, columns.join('  '));
}

const apis = ['PUBLIC', 'INTERNAL', 'ADMIN'] as const;

/** `artseal requests` */
export const requests: Command = {
  usage:
    'requests [--platform NAME] [--api PUBLIC|INTERNAL|ADMIN] [--request-id ID] [--failed] [--limit N] [--json]',
  summary: 'list the last calls that the running server answered or rejected',
  details: [
    'Lists the newest first: when it ended, HTTP status, error code, duration, API, caller, operation and request id.',
    'The server keeps at most 10,000 calls in memory, without headers and bodies; a restart forgets them.',
    '--platform    lists the calls of one platform or internal system. A ? after the name: the call claims a key of the',
    '              platform, but was rejected before the server verified its signature.',
    '--api         lists the calls of the public API, of the internal API, or of the admin socket.',
    '--request-id  lists the call whose response had this X-Request-Id.',
    '--failed      lists only calls that returned an error.',
    '--limit       lists at most N calls.',
  ],
  ...calls(async (session) => {
    const { words, client } = session;
    const limit = readFlag(words, 'limit', parseCount);
    const filter = {
      platform: words.text('platform') ?? '',
      api: RequestEntry_Api[readFlag(words, 'api', oneOf(apis)) ?? 'API_UNSPECIFIED'],
      requestId: words.text('request-id') ?? '',
      failed: words.has('failed'),
    };
    const read = (page: PageFields) => client(AdminService).listRequests({ ...filter, ...page });
    const found = itemsOf<'requests', RequestEntry>('requests', read);
    for await (const request of firstOf(found, limit)) showRequest(request, session);
  }),
};

function showRequest({ $typeName: _, ...found }: RequestEntry, { show }: CallSession): void {
  const { requestId, at, httpStatus, reason, durationMs, operation, authenticated } = found;
  const api = wordIn(RequestEntry_Api, found.api);
  const caller = authenticated ? found.caller : `${found.caller}?`;
  const columns = [
    ...[at, String(httpStatus).padStart(3), (reason || 'OK').padEnd(22), `${durationMs} ms`.padStart(9)],
    ...[api.padEnd(8), caller, operation || '-', requestId],
  ];
  show({ ...found, api }, columns.join('  '));
}

/** `artseal audit-log` */
export const auditLog: Command = {
  usage: 'audit-log [--since DATE|DURATION] [--json]',
  summary: 'list who changed what, and why',
  details: [
    'Lists changes of keys, tokens, platforms, parties and secrets, changes of webhooks by others than their owners, and',
    'decisions about orders, by command or over RPC. The newest entry is first.',
    'Each entry is stored in the transaction of its change. The database rejects changes of entries.',
    '--since takes a day of ARTSEAL_TIME_ZONE (2026-11-21), a time (2026-11-21T09:15:00+08:00) or a duration (7d).',
  ],
  ...calls((session) => {
    const { client, showAll } = session;
    const since = sinceOf(session) ?? '';
    return showAll('entries', (page) => client(AdminService).listAuditLog({ since, ...page }), showEntry);
  }),
};

function showEntry(found: AuditEntry, { show }: CallSession): void {
  const { at, actor, action, subject } = found;
  const [before, after] = [membersOf(found.before), membersOf(found.after)];
  const [id, reason] = [Number(found.id), found.reason || undefined];
  const why = reason === undefined ? '' : `: ${reason}`;
  const columns = [at, action.padEnd(16), subject, changesText(before, after), `by ${actor}${why}`];
  show({ id, at, actor, action, subject, reason, before, after }, columns.join('  '));
}

type Members = Readonly<Record<string, unknown>>;

const membersOf = (json: string): Members | undefined => (json === '' ? undefined : JSON.parse(json));

/** The members that differ: `status "ACTIVE" → "REVOKED"`. Times in Unix seconds, `…AtS`, are shown as timestamps. */
function changesText(before: Members = {}, after: Members = {}): string {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names
    .map((name) => [name.replace(/AtS$/, 'At'), valueText(name, before), valueText(name, after)] as const)
    .filter(([, old, now]) => old !== now)
    .map(([name, old, now]) => (old === undefined ? `${name} ${now}` : `${name} ${old} → ${now ?? 'none'}`))
    .join(', ');
}

function valueText(name: string, { [name]: value }: Members): string | undefined {
  return name.endsWith('AtS') && typeof value === 'number'
    ? utcTimestamp(value * 1_000)
    : JSON.stringify(value);
}
