import { readDataDir } from '../config/config.ts';
import { retentionYears, yearOfFiling } from '../domain/filing.ts';
import { utcTimestamp } from '../domain/utc.ts';
import { type ExpiredFiling, erasedPerRequestMax } from '../store/operator-commands.ts';
import { databaseFile } from '../store/sqlite/location.ts';
import { rewriteDatabase } from '../store/sqlite/rewriting.ts';
import { copiesOf } from '../store/sqlite/upgrade.ts';
import type { Execute } from '../store/store.ts';
import type { Action, CommandGroup } from './command.ts';
import { changeRegistry, localActor } from './session.ts';

const purge: Action = {
  usage: 'retention purge [--erase] [--reason TEXT]',
  details: [
    `Counts the filings without open order whose records are all more than ${retentionYears} years old. --erase erases their texts, prices,`,
    'hashes and salts for good. Numbers, times and the evidence log stay, and every proof stays valid.',
    'Age is counted up to the newest filing. If nothing was filed for long, run artseal clock accept before.',
    'The server may run. If it is stopped, the file is also rewritten, so that unused parts of it keep nothing.',
    'If the command is interrupted, run it again: it continues. Backups keep erased texts until they are removed.',
  ],
  run: async (words, terminal) => {
    const by = localActor(words, terminal);
    const isErasing = words.has('erase');
    const dataDir = readDataDir(terminal.env);
    await changeRegistry(words, terminal, async ({ execute }) => {
      const erase = (some: readonly ExpiredFiling[]) =>
        execute({ kind: 'EraseFilings', by, filingNos: some.map(({ filingNo }) => filingNo) });
      const expired = await tally(execute, by.atS, isErasing ? erase : async (some) => some);
      for (const line of report(expired, isErasing)) terminal.print(line);
    });
    if (isErasing) for (const line of rewritten(dataDir)) terminal.print(line);
  },
};

/** `artseal retention` */
export const retention: CommandGroup = {
  summary: 'erase filings whose retention period is over',
  actions: [purge],
  details: [],
};

/** The filings of one year of numbers. */
interface Tally {
  readonly filings: number;
  readonly records: number;
  readonly first: string;
  readonly last: string;
}

/** Expired filings by the year of their numbers; their newest records are from before `beforeS`, Unix seconds. */
interface Expired {
  readonly years: ReadonlyMap<number, Tally>;
  readonly beforeS: number;
}

/** Reads all expired filings page by page, and counts those that `treat` returns. */
async function tally(
  execute: Execute,
  nowS: number,
  treat: (some: readonly ExpiredFiling[]) => Promise<readonly ExpiredFiling[]>,
): Promise<Expired> {
  const years = new Map<number, Tally>();
  let from: number | undefined;
  let beforeS: number;
  do {
    const page = await execute({ kind: 'ListExpired', nowS, page: { from, size: erasedPerRequestMax } });
    for (const { filingNo, records } of await treat(page.items)) {
      const year = yearOfFiling(filingNo);
      const of = years.get(year) ?? { filings: 0, records: 0, first: filingNo, last: filingNo };
      years.set(year, { ...of, filings: of.filings + 1, records: of.records + records, last: filingNo });
    }
    from = page.next;
    beforeS = page.beforeS;
  } while (from !== undefined);
  return { years, beforeS };
}

function report({ years, beforeS }: Expired, isErased: boolean): string[] {
  const tallies = [...years.values()];
  const sum = (of: (tally: Tally) => number) => tallies.reduce((total, tally) => total + of(tally), 0);
  const all = `${sum(({ filings }) => filings)} filings with ${sum(({ records }) => records)} records`;
  const lines = [...years].map(
    ([year, { filings, records, first, last }]) =>
      `${year}: ${filings} filings with ${records} records, ${first} to ${last}`,
  );
  if (isErased) return [...lines, `erased: ${all}`];
  return [
    ...lines,
    `to erase, recorded up to ${utcTimestamp(beforeS * 1_000)}: ${all}`,
    'nothing was changed: --erase erases them for good',
  ];
}

/** Rewrites the database if no server runs, and says which files still hold erased texts. */
function rewritten(dataDir: string): string[] {
  const database = databaseFile(dataDir);
  const outcome = rewriteDatabase(dataDir);
  return [
    {
      REWRITTEN: `${database} was rewritten: no erased text is left in it`,
      FOLDED: `the server runs, so ${database} was not rewritten: unused parts of it may hold erased texts; stop the server and run this again`,
      HELD: `another process holds ${database}-wal, which still has erased texts: run this again`,
    }[outcome],
    ...copiesOf(database).map(({ file }) => `${file}, a copy of an upgrade, has the erased texts: remove it`),
    'backups have the erased texts until they are rotated out',
  ];
}
