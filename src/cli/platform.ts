import {
  AdminService,
  type GetUsageResponse,
  Key_Tier,
  type Platform,
  Platform_Status,
} from '../../gen/artseal/v1/admin_pb.ts';
import { type Action, type CommandGroup, fieldLines, UsageError, type Words } from './command.ts';
import { limitsOf, quotaShown, tierChoice, tierOf } from './key.ts';
import { type CallSession, calls, present, wordIn } from './session.ts';

const list: Action = {
  usage: 'platform list [--json]',
  details: ['Lists all platforms, the oldest first.'],
  ...calls(({ client, showAll }) =>
    showAll('platforms', (page) => client(AdminService).listPlatforms(page), show),
  ),
};

const showOne: Action = {
  usage: 'platform show NAME [--json]',
  details: ['Shows the agreement of a platform, its calls of this month, and its filings of this year.'],
  ...calls(async ({ client, words, show }) => {
    const caller = words.required('NAME');
    const { platform } = await client(AdminService).getPlatform({ caller });
    const usage = await client(AdminService).getUsage({ caller });
    const { month, filingsInYear } = usage;
    const counted = countedOf(month, usage);
    const found = { ...shown(present(platform)), ...counted, filingsThisYear: Number(filingsInYear) };
    show(found, ...fieldLines(found, 15));
  }),
};

const set: Action = {
  usage: `platform set NAME [--tier ${tierChoice}] [--monthly-quota N|unlimited] [--filing-cap N|none] [--reason TEXT] [--json]`,
  details: [
    'Changes the agreement of a platform; what you leave out stays. TRIAL and STANDARD have a fixed quota, ENTERPRISE needs one.',
    'Calls of this month count towards the new quota, filings of this year towards the new cap.',
  ],
  ...calls(async (session) => {
    const { client, words, reason } = session;
    const request = { caller: words.required('NAME'), ...changeOf(words), reason };
    const { platform } = await client(AdminService).updatePlatform(request);
    show(present(platform), session);
  }),
};

function setting(
  word: string,
  method: 'suspendPlatform' | 'resumePlatform',
  ...details: readonly string[]
): Action {
  return {
    usage: `platform ${word} NAME [--reason TEXT] [--json]`,
    details,
    ...calls(async (session) => {
      const { client, words, reason } = session;
      const { platform } = await client(AdminService)[method]({ caller: words.required('NAME'), reason });
      show(present(platform), session);
    }),
  };
}

const usage: Action = {
  usage: 'platform usage [--month YYYY-MM] [--csv|--json]',
  details: [
    'Lists the calls of all platforms in a month of ARTSEAL_TIME_ZONE, by default the current one, with their current quotas.',
    "--csv is for spreadsheets: it puts ' before a name that looks like a formula.",
  ],
  ...calls(async (session) => {
    const { client, words } = session;
    if (words.has('csv') && words.has('json')) throw new UsageError('takes one of --csv, --json');
    let hasHead = words.has('json');
    const listPage = async (page: object) => {
      const found = await client(AdminService).listUsage({ month: words.text('month') ?? '', ...page });
      if (!hasHead) session.print(words.has('csv') ? csvLine(usageColumns) : usageHead);
      hasHead = true;
      const usages = found.usages.map((usage) => ({
        ...shown(present(usage.platform)),
        ...countedOf(found.month, usage),
      }));
      return { ...found, usages };
    };
    await session.showAll('usages', listPage, showUsage);
  }),
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
      'suspendPlatform',
      'Rejects every key of the platform until it is resumed, also keys created meanwhile.',
      'Its open orders are still settled.',
    ),
    setting(
      'resume',
      'resumePlatform',
      'Lets the platform in again. Keys that were suspended one by one stay suspended.',
    ),
    usage,
  ],
  details: ['NAME is that of key create --name. A change is effective when the command returns.'],
};

function shown(platform: Platform) {
  const { caller: name, tier, filingCap, status } = platform;
  return {
    ...{ name, tier: wordIn(Key_Tier, tier), monthlyQuota: quotaShown(platform) },
    filingCap: filingCap === undefined ? ('none' as const) : Number(filingCap),
    status: wordIn(Platform_Status, status),
  };
}

/** The changed agreement; what is left out stays. Throws UsageError. */
function changeOf(words: Words) {
  if (['tier', 'monthly-quota', 'filing-cap'].every((flag) => words.text(flag) === undefined))
    throw new UsageError('needs --tier, --monthly-quota or --filing-cap');
  const noFilingCap = words.text('filing-cap') === 'none';
  const { filingCap, ...limits } = limitsOf(words);
  const cap = noFilingCap || filingCap === undefined ? {} : { filingCap };
  return { tier: tierOf(words), ...limits, noFilingCap, ...cap };
}

function show(platform: Platform, session: CallSession): void {
  const found = shown(platform);
  const { name, tier, monthlyQuota, filingCap, status } = found;
  const columns = [status.padEnd(9), tier.padEnd(10), String(monthlyQuota).padStart(9), name];
  if (filingCap !== 'none') columns.push(`at most ${filingCap} filings a year`);
  session.show(found, columns.join('  '));
}

const countedOf = (month: string, { calls, remaining }: Pick<GetUsageResponse, 'calls' | 'remaining'>) => ({
  ...{ month, calls: Number(calls), left: remaining === undefined ? 'unlimited' : Number(remaining) },
});

/** The members of a usage in CSV, in order. */
const usageColumns = ['name', 'tier', 'status', 'month', 'calls', 'monthlyQuota', 'left'] as const;

type Usage = ReturnType<typeof shown> & ReturnType<typeof countedOf>;

const usageHead = tableLine('month', 'platform', 'calls', 'quota', 'left');

/** Shows a usage as a line of CSV, of JSON, or of the table. */
function showUsage(usage: Usage, { words, show }: CallSession): void {
  const { name, status, monthlyQuota, month, calls, left } = usage;
  const platform = status === 'SUSPENDED' ? `${name}  (suspended)` : name;
  show(
    usage,
    words.has('csv')
      ? csvLine(usageColumns.map((column) => usage[column]))
      : tableLine(month, platform, calls, monthlyQuota, left),
  );
}

function tableLine(month: string, name: string, ...numbers: readonly (number | string)[]): string {
  return [month.padEnd(7), ...numbers.map((number) => String(number).padStart(9)), name].join('  ');
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
