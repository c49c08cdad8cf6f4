import { readDataDir } from '../config/config.ts';
import { retentionYears, yearOfFiling } from '../domain/filing.ts';
import { type ExpiredFiling, erasedAtOnceMax } from '../store/retention-commands.ts';
import { databaseFile } from '../store/sqlite/location.ts';
import { rewriteDatabase } from '../store/sqlite/rewriting.ts';
import { formersOf } from '../store/sqlite/upgrade.ts';
import type { Execute } from '../store/store.ts';
import { localActor } from './actor.ts';
import { type Action, type CommandGroup, exitCodes } from './command.ts';
import { changeRegistry } from './registry.ts';
import { instant } from './verdict.ts';

const purge: Action = {
  usage: 'retention purge [--erase] [--reason TEXT]',
  details: [
    `shows the filings of which every record is more than ${retentionYears} years old and no order is open; with --erase their texts, prices,`,
    'hashes and salts are erased for good. Numbers, times and the evidence log stay, and every proof is valid as before.',
    'Years are counted to the newest filing: where nothing was filed for long, artseal clock accept comes before.',
    'The server may run. With it stopped the file is rewritten as well, so that nothing is left in unused parts of it.',
    'Cut off, it goes on where it was when run again. Backups have what was erased until they are gone.',
  ],
  run: async (words, terminal) => {
    const by = localActor(words, terminal);
    const isErasing = words.has('erase');
    const dataDir = readDataDir(terminal.env);
    await changeRegistry(terminal, async ({ execute }) => {
      const erase = (some: readonly ExpiredFiling[]) =>
        execute({ kind: 'EraseFilings', by, filingNos: some.map(({ filingNo }) => filingNo) });
      const expired = await tally(execute, by.atS, isErasing ? erase : async (some) => some);
      for (const line of report(expired, isErasing)) terminal.print(line);
    });
    if (isErasing) for (const line of rewritten(dataDir)) terminal.print(line);
    return exitCodes.done;
  },
};

/** `artseal retention` */
export const retention: CommandGroup = {
  summary: 'erase what was kept long enough',
  actions: [purge],
  details: [],
};

/** What there is of a year of numbers. */
interface Tally {
  readonly filings: number;
  readonly records: number;
  readonly first: string;
  readonly last: string;
}

/** What was found, by the year of the numbers, and up to when it was looked for, Unix seconds. */
interface Expired {
  readonly years: ReadonlyMap<number, Tally>;
  readonly beforeS: number;
}

/** Goes through all filings whose retention is over, some at a time: what became of them. */
async function tally(
  execute: Execute,
  nowS: number,
  treat: (some: readonly ExpiredFiling[]) => Promise<readonly ExpiredFiling[]>,
): Promise<Expired> {
  const years = new Map<number, Tally>();
  let from: number | undefined;
  let beforeS: number;
  do {
    const page = await execute({ kind: 'ListExpired', nowS, page: { from, size: erasedAtOnceMax } });
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
    `to be erased, recorded up to ${instant(beforeS)}: ${all}`,
    'nothing was changed: --erase erases them for good',
  ];
}

/** What is to be known of the files. */
function rewritten(dataDir: string): string[] {
  const database = databaseFile(dataDir);
  const outcome = rewriteDatabase(dataDir);
  return [
    {
      REWRITTEN: `${database} was rewritten: nothing of what was erased is left in it`,
      FOLDED: `the server runs, so ${database} was not rewritten: unused parts of it may have copies that SQLite made before; stop the server and run this again for that`,
      HELD: `${database}-wal is held by another process and has what was erased until it is written anew: run this again`,
    }[outcome],
    ...formersOf(database).map(
      ({ file }) => `${file}, of an upgrade, has what was erased as well: remove it`,
    ),
    'backups have it until they are rotated out',
  ];
}
