import { type ExpiredYear, MaintenanceService } from '../../gen/artseal/v1/maintenance_pb.ts';
import { readDataDir, usesPostgres } from '../config/config.ts';
import { retentionYears } from '../domain/filing.ts';
import { databaseFile } from '../store/sqlite/location.ts';
import { rewriteDatabase } from '../store/sqlite/rewriting.ts';
import { copiesOf } from '../store/sqlite/upgrade.ts';
import type { Action, CommandGroup, Output, Terminal, Words } from './command.ts';
import { type CallSession, callFlags, itemsOf, withService } from './session.ts';

const purge: Action = {
  usage: 'retention purge [--erase] [--reason TEXT] [--json]',
  details: [
    `Counts the filings without open order whose records are all more than ${retentionYears} years old. --erase erases their texts, prices,`,
    'hashes and salts for good. Numbers, times and the evidence log stay, and every proof stays valid.',
    'Age is counted up to the newest filing. If nothing was filed for long, run artseal clock accept before.',
    'The server may run. If it is stopped, a file on SQLite is also rewritten, so that no unused part of it holds erased texts.',
    'If the command is interrupted, run it again: it continues. Backups keep erased texts until they are removed.',
  ],
  common: callFlags,
  run: async (words, terminal) => {
    if (words.has('erase')) return erase(words, terminal);
    const { years, recordedUpTo } = await withService(words, terminal, countExpired);
    terminal.show(
      { erased: false, recordedUpTo, ...totalOf(years), years },
      ...years.map(yearLine),
      `to erase, recorded up to ${recordedUpTo}: ${totalText(years)}`,
      'nothing was changed: --erase erases them for good',
    );
    return undefined;
  },
};

/** Erases, rewrites the database if no server runs, and shows which files may still hold erased texts. */
async function erase(words: Words, terminal: Output): Promise<undefined> {
  const years = await withService(words, terminal, eraseExpired);
  // Shown before the rewriting, which can fail.
  const lines = [...years.map(yearLine), `erased: ${totalText(years)}`];
  if (!words.has('json')) for (const line of lines) terminal.print(line);
  const { left, text } = leftBy(words, terminal);
  terminal.show({ erased: true, ...totalOf(years), years, left }, ...text, backupsLeft);
}

/** `artseal retention` */
export const retention: CommandGroup = {
  summary: 'erase filings whose retention period is over',
  actions: [purge],
  details: [],
};

/** What is counted or erased of the filings of a year. */
type Year = Pick<ExpiredYear, 'year' | 'filings' | 'records' | 'firstFilingNo' | 'lastFilingNo'>;

async function countExpired({ client }: CallSession): Promise<{ years: Year[]; recordedUpTo: string }> {
  let recordedUpTo = '';
  const years = await yearsOf(async (pageToken) => {
    const page = await client(MaintenanceService).countExpired({ pageToken });
    recordedUpTo = page.recordedUpTo;
    return page;
  });
  return { years, recordedUpTo };
}

const eraseExpired = ({ client, reason }: CallSession): Promise<Year[]> =>
  yearsOf((pageToken) => client(MaintenanceService).eraseExpired({ pageToken, reason }));

/** The years of all pages. Merges the parts of a year that several calls treated. */
async function yearsOf(
  read: (pageToken: string) => Promise<{ years: ExpiredYear[]; nextPageToken: string }>,
): Promise<Year[]> {
  const parts = await Array.fromAsync(itemsOf('years', ({ pageToken }) => read(pageToken)));
  return Array.from(
    Map.groupBy(parts, ({ year }) => year),
    ([year, some]) => ({
      year,
      ...totalOf(some),
      firstFilingNo: some.at(0)?.firstFilingNo ?? '',
      lastFilingNo: some.at(-1)?.lastFilingNo ?? '',
    }),
  );
}

const totalOf = (years: readonly Year[]) => ({
  filings: years.reduce((total, { filings }) => total + filings, 0),
  records: years.reduce((total, { records }) => total + records, 0),
});

function totalText(years: readonly Year[]): string {
  const { filings, records } = totalOf(years);
  return `${filings} filings with ${records} records`;
}

const yearLine = (year: Year): string =>
  `${year.year}: ${totalText([year])}, ${year.firstFilingNo} to ${year.lastFilingNo}`;

const backupsLeft = 'backups have the erased texts until they are rotated out';

/** The files that may still hold erased texts, null if unknown, and what to do about them. */
function leftBy(words: Words, { env }: Terminal) {
  if (!words.has('url') && !usesPostgres(env)) return rewritten(readDataDir(env));
  const text = words.has('url')
    ? 'unused parts of the database of the server may hold erased texts: on its machine, stop it and run this again'
    : 'unused parts of the tables may hold erased texts: VACUUM (FULL) of all tables rewrites them while the server is stopped; the ' +
      'archived WAL has them until it is removed';
  return { left: null, text: [text] };
}

/** Rewrites the database if no server runs. */
function rewritten(dataDir: string) {
  const database = databaseFile(dataDir);
  const result = rewriteDatabase(dataDir);
  const text = {
    REWRITTEN: `${database} was rewritten: no erased text is left in it`,
    SERVED: `the server runs, so ${database} was not rewritten: unused parts of it may hold erased texts; stop the server and run this again`,
    READ: `another process reads ${database}, and ${database}-wal still has erased texts: run this again`,
  }[result];
  const ownFiles = { REWRITTEN: [], SERVED: [database], READ: [`${database}-wal`] }[result];
  const copies = copiesOf(database).map(({ file }) => file);
  return {
    left: [...ownFiles, ...copies],
    text: [text, ...copies.map((file) => `${file}, a copy of an upgrade, has the erased texts: remove it`)],
  };
}
