import type { AuditEntry } from '../domain/audit-entry.ts';
import { allOf } from '../store/paging.ts';
import { readInstant } from './arguments.ts';
import type { Command } from './command.ts';
import { type Session, withRegistry } from './session.ts';

/** `artseal audit-log` */
export const auditLog: Command = {
  usage: 'audit-log [--since DATE|DURATION] [--json]',
  summary: 'list who changed what, and why',
  details: [
    'Lists changes of keys, tokens, platforms, parties and secrets, changes of webhooks by operators, and decisions about',
    'orders, by command or by AdminService. The newest entry is first.',
    'Each entry is stored in the transaction of its change. The database rejects changes of entries.',
    '--since takes a day of ARTSEAL_TIME_ZONE (2026-11-21), a time (2026-11-21T09:15:00+08:00) or a duration (7d).',
  ],
  run: (words, terminal) =>
    withRegistry(words, terminal, async (session) => {
      const { execute, show, config } = session;
      const sinceS = readInstant(words, 'since', 'BEFORE', config.timeZone);
      for await (const found of allOf((page) => execute({ kind: 'ListAuditLog', sinceS, page }))) {
        const entry = entryOf(found, session);
        show(entry, line(entry));
      }
    }),
};

function entryOf(found: AuditEntry, { timestamp }: Session) {
  const { id, atS, actor, action, subject, reason } = found;
  const [before, after] = [membersOf(found.before), membersOf(found.after)];
  return { id, at: timestamp(atS), actor, action, subject, reason, before, after };
}

const membersOf = (json: string | undefined): Record<string, unknown> | undefined =>
  json === undefined ? undefined : JSON.parse(json);

function line(entry: ReturnType<typeof entryOf>): string {
  const { at, actor, action, subject, reason, before = {}, after = {} } = entry;
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changes = names
    .map((name) => [name, JSON.stringify(before[name]), JSON.stringify(after[name])] as const)
    .filter(([, old, now]) => old !== now)
    .map(([name, old, now]) => (old === undefined ? `${name} ${now}` : `${name} ${old} → ${now ?? 'none'}`));
  const why = reason === undefined ? '' : `: ${reason}`;
  return [at, action.padEnd(16), subject, changes.join(', '), `by ${actor}${why}`].join('  ');
}
