import { checkMonth, yearOf } from '../domain/calendar.ts';
import { callsLeft, type PlatformStatus, platformNotFound } from '../domain/caller.ts';
import { rejectViolations } from '../domain/violation.ts';
import type { Platform, PlatformUsage } from '../store/caller-commands.ts';
import { type Action, type CommandGroup, fieldLines, UsageError } from './command.ts';
import { limitsOf, tierChoice, tierOf } from './key.ts';
import { changeRegistry, changes, reads, type Session, withRegistry } from './session.ts';

const list: Action = {
  usage: 'platform list [--json]',
  details: ['Lists all platforms, the oldest first.'],
  run: reads(({ execute, showAll }) => showAll((page) => execute({ kind: 'ListPlatforms', page }), show)),
};

const showOne: Action = {
  usage: 'platform show NAME [--json]',
  details: ['Shows the agreement of a platform, its calls of this month, and its filings of this year.'],
  run: reads(async (session) => {
    const { execute, words } = session;
    const platform = await execute({ kind: 'FindPlatform', name: words.required('NAME') });
    if (platform === undefined) throw platformNotFound();
    const month = currentMonth(session);
    const { callerId } = platform;
    const calls = await execute({ kind: 'CountCalls', callerId, month });
    const filingsThisYear = await execute({ kind: 'CountFilings', callerId, year: yearOf(month) });
    const found = { ...shown(platform), ...countedOf(month, { ...platform, calls }), filingsThisYear };
    session.show(found, ...fieldLines(found, 15));
  }),
};

const set: Action = {
  usage: `platform set NAME [--tier ${tierChoice}] [--monthly-quota N|unlimited] [--filing-cap N|none] [--reason TEXT] [--json]`,
  details: [
    'Changes the agreement of a platform; what you leave out stays. TRIAL and STANDARD have a fixed quota, ENTERPRISE needs one.',
    'Calls of this month count towards the new quota, filings of this year towards the new cap.',
  ],
  run: async (words, terminal) => {
    const noFilingCap = words.text('filing-cap') === 'none';
    const limits = limitsOf(words);
    const filingCap = noFilingCap ? undefined : limits.filingCap;
    const change = { tier: tierOf(words), ...limits, filingCap, noFilingCap };
    if (['tier', 'monthly-quota', 'filing-cap'].every((flag) => words.text(flag) === undefined))
      throw new UsageError('needs --tier, --monthly-quota or --filing-cap');
    return changeRegistry(words, terminal, async (session) => {
      const [by, name] = [session.actor(), words.required('NAME')];
      show(await session.execute({ kind: 'ChangeAgreement', by, name, change }), session);
    });
  },
};

/** An action that sets the status of a platform. */
function setting(word: string, status: PlatformStatus, ...details: readonly string[]): Action {
  return {
    usage: `platform ${word} NAME [--reason TEXT] [--json]`,
    details,
    run: changes(async (session) => {
      const [by, name] = [session.actor(), session.words.required('NAME')];
      show(await session.execute({ kind: 'SetPlatformStatus', by, name, status }), session);
    }),
  };
}

const usage: Action = {
  usage: 'platform usage [--month YYYY-MM] [--csv|--json]',
  details: [
    'Lists the calls of all platforms in a month of ARTSEAL_TIME_ZONE, by default the current one, with their current quotas.',
    "--csv is for spreadsheets: it puts ' before a name that looks like a formula.",
  ],
  run: async (words, terminal) => {
    if (words.has('csv') && words.has('json')) throw new UsageError('takes one of --csv, --json');
    const given = words.text('month');
    rejectViolations(given === undefined ? [] : checkMonth(given));
    return withRegistry(words, terminal, async (session) => {
      const month = given ?? currentMonth(session);
      if (words.has('csv')) session.print(csvLine(usageColumns));
      else if (!words.has('json')) session.print(tableLine('month', 'calls', 'quota', 'left', 'platform'));
      await session.showAll(
        (page) => session.execute({ kind: 'ListUsage', month, page }),
        (usage) => showUsage({ ...shown(usage), ...countedOf(month, usage) }, session),
      );
    });
  },
};

/** `artseal platform` */
export const platform: CommandGroup = {
  summary: 'list platforms with their usage, change their agreements, suspend and resume them',
  actions: [
    list,
    showOne,
    set,
    setting(
      'suspend',
      'SUSPENDED',
      'Rejects every key of the platform until it is resumed, also keys created meanwhile.',
      'Its open orders are still settled.',
    ),
    setting(
      'resume',
      'ACTIVE',
      'Lets the platform in again. Keys that were suspended one by one stay suspended.',
    ),
    usage,
  ],
  details: ['NAME is that of key create --name. A change is effective when the command returns.'],
};

const currentMonth = ({ calendar }: Session): string => calendar.month(Date.now()).name;

const shown = ({ caller: name, tier, monthlyQuota, filingCap, status }: Platform) => ({
  ...{ name, tier, monthlyQuota: monthlyQuota ?? 'unlimited', filingCap: filingCap ?? 'none', status },
});

function show(found: Platform, session: Session): void {
  const { name, tier, monthlyQuota, status } = shown(found);
  const columns = [status.padEnd(9), tier.padEnd(10), String(monthlyQuota).padStart(9), name];
  if (found.filingCap !== null) columns.push(`at most ${found.filingCap} filings a year`);
  session.show(shown(found), columns.join('  '));
}

const countedOf = (month: string, { calls, monthlyQuota }: PlatformUsage) => ({
  ...{ month, calls, left: callsLeft(monthlyQuota, calls) ?? 'unlimited' },
});

/** The members of a usage in CSV, in order. */
const usageColumns = ['name', 'tier', 'status', 'month', 'calls', 'monthlyQuota', 'left'] as const;

type Usage = ReturnType<typeof shown> & ReturnType<typeof countedOf>;

/** Shows a usage as a line of CSV, of JSON, or of the table. */
function showUsage(usage: Usage, { words, show }: Session): void {
  const { name, status, monthlyQuota, month, calls, left } = usage;
  const platform = status === 'SUSPENDED' ? `${name}  (suspended)` : name;
  show(
    usage,
    words.has('csv')
      ? csvLine(usageColumns.map((column) => usage[column]))
      : tableLine(month, calls, monthlyQuota, left, platform),
  );
}

function tableLine(month: string, ...columns: readonly (number | string)[]): string {
  const name = columns.at(-1);
  const numbers = columns.slice(0, -1).map((number) => String(number).padStart(9));
  return [month.padEnd(7), ...numbers, name].join('  ');
}

/**
 * A line of CSV (RFC 4180) without its end. A text that a spreadsheet would run as a formula gets a leading `'`. Every
 * text is quoted for spreadsheets that split at semicolons.
 */
export function csvLine(fields: readonly (string | number)[]): string {
  return fields.map((field) => (typeof field === 'number' ? String(field) : quoted(field))).join(',');
}

function quoted(text: string): string {
  // Spreadsheets accept the full-width forms of East Asian scripts as well.
  const isFormula = /^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]/.test(text);
  return `"${isFormula ? "'" : ''}${text.replaceAll('"', '""')}"`;
}
