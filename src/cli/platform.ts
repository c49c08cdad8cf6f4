import type { Config } from '../config/config.ts';
import { checkMonth, createCalendar, yearOf } from '../domain/calendar.ts';
import { callsLeft, type PlatformStatus, platformNotFound } from '../domain/caller.ts';
import { refuseViolations } from '../domain/violation.ts';
import type { Platform, PlatformUsage } from '../store/caller-commands.ts';
import { allOf } from '../store/paging.ts';
import { localActor } from './actor.ts';
import { limitsOf, tierChoice, tierOf } from './agreement.ts';
import { type Action, type CommandGroup, type Terminal, UsageError, type Words } from './command.ts';
import { csvLine } from './csv.ts';
import { changeRegistry, withRegistry } from './registry.ts';

const list: Action = {
  usage: 'platform list [--json]',
  details: [],
  run: (words, terminal) =>
    withRegistry(terminal, async ({ execute }) => {
      const platforms = allOf((page) => execute({ kind: 'ListPlatforms', page }));
      for await (const found of platforms) show(found, words, terminal);
    }),
};

const showOne: Action = {
  usage: 'platform show NAME [--json]',
  details: ['shows what was agreed with it, its calls of this month, and its filings of this year.'],
  run: (words, terminal) =>
    withRegistry(terminal, async ({ execute }, config) => {
      const platform = await execute({ kind: 'FindPlatform', name: words.required('NAME') });
      if (platform === undefined) throw platformNotFound();
      const month = currentMonth(config);
      const { callerId } = platform;
      const calls = await execute({ kind: 'CountCalls', callerId, month });
      const filings = await execute({ kind: 'CountFilings', callerId, year: yearOf(month) });
      const found = {
        ...told(platform),
        ...countedOf(month, { ...platform, calls }),
        filingsThisYear: filings,
      };
      if (words.has('json')) return terminal.print(JSON.stringify(found));
      for (const [label, value] of Object.entries(found)) terminal.print(`${label.padEnd(15)} ${value}`);
    }),
};

const set: Action = {
  usage: `platform set NAME [--tier ${tierChoice}] [--monthly-quota N|unlimited] [--filing-cap N|none] [--reason TEXT] [--json]`,
  details: [
    'changes what was agreed with it; what is left out stays. TRIAL and STANDARD fix the quota, ENTERPRISE needs one.',
    'Calls that were counted this month count against the new quota, filings of this year against the new cap.',
  ],
  run: async (words, terminal) => {
    const noFilingCap = words.text('filing-cap') === 'none';
    const limits = limitsOf(words);
    const filingCap = noFilingCap ? undefined : limits.filingCap;
    const change = { tier: tierOf(words), ...limits, filingCap, noFilingCap };
    if (['tier', 'monthly-quota', 'filing-cap'].every((flag) => words.text(flag) === undefined))
      throw new UsageError('needs --tier, --monthly-quota or --filing-cap');
    return changeRegistry(terminal, async ({ execute }) => {
      const [by, name] = [localActor(words, terminal), words.required('NAME')];
      show(await execute({ kind: 'ChangeAgreement', by, name, change }), words, terminal);
    });
  },
};

/** An action that gives a platform a status. */
function setting(word: string, status: PlatformStatus, ...details: readonly string[]): Action {
  return {
    usage: `platform ${word} NAME [--reason TEXT] [--json]`,
    details,
    run: (words, terminal) =>
      changeRegistry(terminal, async ({ execute }) => {
        const [by, name] = [localActor(words, terminal), words.required('NAME')];
        const changed = await execute({ kind: 'SetPlatformStatus', by, name, status });
        show(changed, words, terminal);
      }),
  };
}

const usage: Action = {
  usage: 'platform usage [--month YYYY-MM] [--csv|--json]',
  details: [
    'counts the calls of all platforms in a month of the business time zone, this one if not given, beside the quota of now.',
    "--csv is for spreadsheets: a name that one would take for a formula has ' before it.",
  ],
  run: async (words, terminal) => {
    const format = formatOf(words);
    const given = words.text('month');
    refuseViolations(given === undefined ? [] : checkMonth(given));
    return withRegistry(terminal, async ({ execute }, config) => {
      const month = given ?? currentMonth(config);
      const usages = allOf((page) => execute({ kind: 'ListUsage', month, page }));
      for (const line of format.head) terminal.print(line);
      for await (const counted of usages) terminal.print(format.line(month, counted));
    });
  },
};

/** `artseal platform` */
export const platform: CommandGroup = {
  summary: 'govern platforms: what was agreed with them, what they use, and suspending them as a whole',
  actions: [
    list,
    showOne,
    set,
    setting(
      'suspend',
      'SUSPENDED',
      'refuses every key of the platform until it is resumed, keys that it is issued meanwhile, too.',
      'Orders that it opened are settled all the same.',
    ),
    setting('resume', 'ACTIVE', 'lets it in again, but not with keys that were suspended by themselves.'),
    usage,
  ],
  details: ['NAME is what key create --name gave it. A change is effective when the command returns.'],
};

const currentMonth = ({ timeZone }: Config): string => createCalendar(timeZone).month(Date.now()).name;

const told = ({ caller: name, tier, monthlyQuota, filingCap, status }: Platform) => ({
  ...{ name, tier, monthlyQuota: monthlyQuota ?? 'unlimited', filingCap: filingCap ?? 'none', status },
});

function show(found: Platform, words: Words, { print }: Terminal): void {
  const { name, tier, monthlyQuota, filingCap, status } = told(found);
  const columns = [status.padEnd(9), tier.padEnd(10), String(monthlyQuota).padStart(9), name];
  if (found.filingCap !== null) columns.push(`at most ${filingCap} filings a year`);
  print(words.has('json') ? JSON.stringify(told(found)) : columns.join('  '));
}

const countedOf = (month: string, { calls, monthlyQuota }: PlatformUsage) => ({
  ...{ month, calls, left: callsLeft(monthlyQuota, calls) ?? 'unlimited' },
});

/** How the table of usage is written. */
interface UsageFormat {
  readonly head: readonly string[];
  line(month: string, usage: PlatformUsage): string;
}

function formatOf(words: Words): UsageFormat {
  if (words.has('csv') && words.has('json')) throw new UsageError('takes one of --csv, --json');
  if (words.has('csv')) return csv;
  return words.has('json') ? jsonLines : table;
}

const jsonLines: UsageFormat = {
  head: [],
  line: (month, usage) => JSON.stringify({ ...told(usage), ...countedOf(month, usage) }),
};

const csv: UsageFormat = {
  head: [csvLine(['name', 'tier', 'status', 'month', 'calls', 'monthlyQuota', 'left'])],
  line: (month, usage) => {
    const { name, tier, status, monthlyQuota } = told(usage);
    const { calls, left } = countedOf(month, usage);
    return csvLine([name, tier, status, month, calls, monthlyQuota, left]);
  },
};

const table: UsageFormat = {
  head: [tableLine('month', 'calls', 'quota', 'left', 'platform')],
  line: (month, usage) => {
    const { calls, left } = countedOf(month, usage);
    const { name, monthlyQuota, status } = told(usage);
    const platform = status === 'SUSPENDED' ? `${name}  (suspended)` : name;
    return tableLine(month, calls, monthlyQuota, left, platform);
  },
};

/** Metrics as wide as the months of most platforms need; larger ones push the rest of their line. */
function tableLine(
  month: string,
  calls: number | string,
  quota: number | string,
  left: number | string,
  platform: string,
): string {
  const metrics = [calls, quota, left].map((metric) => String(metric).padStart(9));
  return [month.padEnd(7), ...metrics, platform].join('  ');
}
