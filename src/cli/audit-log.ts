import { AdminService, type AuditEntry } from '../../gen/artseal/v1/admin_pb.ts';
import { utcTimestamp } from '../domain/utc.ts';
import type { Command } from './command.ts';
import { type CallSession, calls, sinceOf } from './session.ts';

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
