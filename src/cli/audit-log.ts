import type { AuditEntry } from '../domain/audit-entry.ts';
import { type Calendar, createCalendar } from '../domain/calendar.ts';
import { allOf } from '../store/paging.ts';
import type { Command } from './command.ts';
import { readInstant } from './instant.ts';
import { withRegistry } from './registry.ts';

/** `artseal audit-log` */
export const auditLog: Command = {
  usage: 'audit-log [--since DATE|DURATION] [--json]',
  summary: 'show who changed what, and why',
  details: [
    'newest first: every change of keys, tokens, platforms, parties, secrets and, by operators, webhooks, and every decision about',
    'an order, by command or by AdminService.',
    'Each is stored with the change itself; the database refuses to change or remove one.',
    '--since 2026-11-21 begins with that day of ARTSEAL_TIME_ZONE, 2026-11-21T09:15:00+08:00 at that time, 7d a week ago.',
  ],
  run: (words, { env, print, printError }) =>
    withRegistry({ env, print, printError }, async ({ execute }, { timeZone }) => {
      const sinceS = readInstant(words, 'since', 'BEFORE', { timeZone, nowS: Math.floor(Date.now() / 1000) });
      const calendar = createCalendar(timeZone);
      for await (const act of allOf((page) => execute({ kind: 'ListAuditLog', sinceS, page }))) {
        print(words.has('json') ? JSON.stringify(shown(act, calendar)) : line(act, calendar));
      }
    }),
};

function shown({ id, atS, actor, action, subject, reason, before, after }: AuditEntry, calendar: Calendar) {
  const at = calendar.timestamp(atS * 1000);
  return { id, at, actor, action, subject, reason, before: membersOf(before), after: membersOf(after) };
}

const membersOf = (json: string | undefined): Record<string, unknown> | undefined =>
  json === undefined ? undefined : JSON.parse(json);

function line(act: AuditEntry, calendar: Calendar): string {
  const { at, actor, action, subject, reason, before = {}, after = {} } = shown(act, calendar);
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changes = names
    .map((name) => [name, JSON.stringify(before[name]), JSON.stringify(after[name])] as const)
    .filter(([, old, now]) => old !== now)
    .map(([name, old, now]) => (old === undefined ? `${name} ${now}` : `${name} ${old} → ${now ?? 'none'}`));
  const why = reason === undefined ? '' : `: ${reason}`;
  return [at, action.padEnd(16), subject, changes.join(', '), `by ${actor}${why}`].join('  ');
}
