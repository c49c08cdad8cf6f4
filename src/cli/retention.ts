import { type ExpiredYear, MaintenanceService } from '../../gen/artseal/v1/maintenance_pb.ts';
import { readDataDir } from '../config/config.ts';
import { retentionYears } from '../domain/filing.ts';
import { databaseFile } from '../store/sqlite/location.ts';
import { rewriteDatabase } from '../store/sqlite/rewriting.ts';
import { copiesOf } from '../store/sqlite/upgrade.ts';
import type { Action, CommandGroup } from './command.ts';
import { type CallSession, calls } from './session.ts';

/** Counts or erases, and prints what it did. */
const treatment = calls(async (session) => {
  const lines = session.words.has('erase') ? await erase(session) : await count(session);
  for (const line of lines) session.print(line);
  return undefined;
});

const purge: Action = {
  usage: 'retention purge [--erase] [--reason TEXT]',
  details: [
    `Counts the filings without open order whose records are all more than ${retentionYears} years old. --erase erases their texts, prices,`,
    'hashes and salts for good. Numbers, times and the evidence log stay, and every proof stays valid.',
    'Age is counted up to the newest filing. If nothing was filed for long, run artseal clock accept before.',
    'The server may run. If it is stopped, the file is also rewritten, so that unused parts of it keep nothing.',
    'If the command is interrupted, run it again: it continues. Backups keep erased texts until they are removed.',
  ],
  ...treatment,
  run: async (words, terminal) => {
    const code = await treatment.run(words, terminal);
    if (!words.has('erase')) return code;
    const left = words.has('url') ? [remoteLeft] : rewritten(readDataDir(terminal.env));
    for (const line of [...left, backupsLeft]) terminal.print(line);
    return code;
  },
};

/** `artseal retention` */
export const retention: CommandGroup = {
  summary: 'erase filings whose retention period is over',
  actions: [purge],
  details: [],
};

async function count({ client }: CallSession): Promise<string[]> {
  const found: ExpiredYear[] = [];
  let [pageToken, upTo] = ['', ''];
  do {
    const response = await client(MaintenanceService).countExpired({ pageToken });
    found.push(...response.years);
    pageToken = response.nextPageToken;
    upTo = response.recordedUpTo;
  } while (pageToken !== '');
  return [
    ...yearLines(found),
    `to erase, recorded up to ${upTo}: ${totalText(found)}`,
    'nothing was changed: --erase erases them for good',
  ];
}

async function erase({ client, reason }: CallSession): Promise<string[]> {
  const erased: ExpiredYear[] = [];
  let pageToken = '';
  do {
    const response = await client(MaintenanceService).eraseExpired({ pageToken, reason });
    erased.push(...response.years);
    pageToken = response.nextPageToken;
  } while (pageToken !== '');
  return [...yearLines(erased), `erased: ${totalText(erased)}`];
}

const sum = (some: readonly ExpiredYear[], of: (year: ExpiredYear) => number): number =>
  some.reduce((total, year) => total + of(year), 0);

const totalText = (found: readonly ExpiredYear[]): string =>
  `${sum(found, ({ filings }) => filings)} filings with ${sum(found, ({ records }) => records)} records`;

/** A line for each year, of which several calls may have treated a part. */
function yearLines(found: readonly ExpiredYear[]): string[] {
  const parts = Map.groupBy(found, ({ year }) => year);
  return Array.from(
    parts,
    ([year, some]) =>
      `${year}: ${totalText(some)}, ${some.at(0)?.firstFilingNo} to ${some.at(-1)?.lastFilingNo}`,
  );
}

const backupsLeft = 'backups have the erased texts until they are rotated out';
const remoteLeft =
  'unused parts of the database of the server may hold erased texts: on its machine, stop it and run this again';

/** Rewrites the database if no server runs, and says which files still hold erased texts. */
function rewritten(dataDir: string): string[] {
  const database = databaseFile(dataDir);
  const result = rewriteDatabase(dataDir);
  return [
    {
      REWRITTEN: `${database} was rewritten: no erased text is left in it`,
      SERVED: `the server runs, so ${database} was not rewritten: unused parts of it may hold erased texts; stop the server and run this again`,
      READ: `another process reads ${database}, and ${database}-wal still has erased texts: run this again`,
    }[result],
    ...copiesOf(database).map(({ file }) => `${file}, a copy of an upgrade, has the erased texts: remove it`),
  ];
}
