import { getTableColumns } from 'drizzle-orm';
import type { FilingTables, NewFiling, StoredRecord } from '../engine/filings.ts';
import type { FilingReads, ListedFiling } from '../engine/parts.ts';
import { filing } from '../engine/schema.ts';
import type { StoredFiling } from '../engine/stored-filing.ts';
import { numbersOf } from '../handlers/filing-numbers.ts';
import type { CapUse } from '../metric-commands.ts';
import type { Command } from '../store.ts';
import { insertRows } from './insert-rows.ts';
import type { Queries } from './leaf-rows.ts';
import { all, Needed } from './needed.ts';

/** The tables of filings, as far as they were read in the open transaction. What is inserted is sent with `flush`. */
export function createFilingTables(queries: Queries) {
  const newFilings: Omit<NewFiling, 'year'>[] = [];
  const found = new Map<string, StoredFiling | undefined>();
  const transfers = new Map<string, StoredRecord[]>();
  const lastNumbers = new Map<number, string | undefined>();
  const floors = new Map<number, number>();
  const counts = createCounts(queries);

  const flush = () => insertRows(queries, 'filing', newFilings.splice(0));

  async function readFilings(numbers: readonly string[]): Promise<void> {
    const [filings, records] = await Promise.all([
      queries.query<StoredFiling>({ ...selectFilings, values: [numbers] }),
      queries.query<StoredRecord>({ ...selectTransfers, values: [numbers] }),
    ]);
    for (const number of numbers) {
      found.set(number, undefined);
      transfers.set(number, []);
    }
    for (const row of filings.rows) found.set(row.filingNo, { ...row, price: BigInt(row.price) });
    for (const row of records.rows) transfers.get(row.filingNo)?.push(row);
  }

  function known<Key, Value>(map: ReadonlyMap<Key, Value>, key: Key, read: () => Promise<void>): Value {
    if (!map.has(key))
      throw new Needed(`${key}`, async () => {
        await all(flush());
        await read();
      });
    return map.get(key) as Value;
  }

  async function readNumbers(year: number): Promise<void> {
    const { from, to } = numbersOf(year);
    const { rows } = await queries.query<{ last: string | null; floor: number | null }>({
      ...selectNumbers,
      values: [from, to, year],
    });
    lastNumbers.set(year, rows[0]?.last ?? undefined);
    floors.set(year, rows[0]?.floor ?? 0);
  }

  const tables: FilingTables = {
    insert: ({ year, ...row }) => {
      newFilings.push(row);
      // What was read before is out of date.
      lastNumbers.delete(year);
      found.delete(row.filingNo);
      counts.add(row.callerId, year, 1);
    },
    lastOf: (year) => known(lastNumbers, year, () => readNumbers(year)),
    floorOf: (year) => known(floors, year, () => readNumbers(year)),
    countOf: (of) => known(counts.all, nameOf(of), () => counts.read(of)),
    find: (filingNo) => known(found, filingNo, () => readFilings([filingNo])),
    transfersOf: (filingNo) => [...known(transfers, filingNo, () => readFilings([filingNo]))],
  };

  function forget(): void {
    found.clear();
    transfers.clear();
  }

  return {
    tables,
    /** Reads the filings that commands of a batch ask for. */
    read: (commands: readonly Command[]): Promise<void>[] => {
      const wanted = commands.flatMap((command) =>
        command.kind === 'GetFiling' || command.kind === 'GetProvenance' ? command.filingNo : [],
      );
      return wanted.length === 0 ? [] : [readFilings([...new Set(wanted)])];
    },
    flush,
    /** Counts filings that another instance has added. */
    counted: counts.add,
    /** Forgets what another command may have changed. */
    forget,
    begin: (): void => {
      forget();
      newFilings.length = 0;
      lastNumbers.clear();
    },
    rolledBack: (): void => counts.all.clear(),
  };
}

type FilingsOf = { readonly callerId: number; readonly year: number };

const nameOf = ({ callerId, year }: FilingsOf): string => `${callerId} ${year}`;

/** How many filings callers have of a year, as far as that was read. */
function createCounts(queries: Queries) {
  const all = new Map<string, number>();
  return {
    all,
    read: async (of: FilingsOf): Promise<void> => void all.set(nameOf(of), await countFilings(queries, of)),
    add: (callerId: number, year: number, filings: number): void => {
      const name = nameOf({ callerId, year });
      const count = all.get(name);
      if (count !== undefined) all.set(name, count + filings);
    },
  };
}

const columns = Object.entries(getTableColumns(filing))
  .map(([name, column]) => `filing.${column.name} AS "${name}"`)
  .join(', ');

const selectFilings = {
  name: 'select filings',
  text: `SELECT ${columns}, caller.name AS caller FROM filing LEFT JOIN caller ON caller.id = filing.caller_id
    WHERE filing_no = ANY($1)`,
};

const selectTransfers = {
  name: 'select transfers',
  text: `SELECT filing_no AS "filingNo", position AS sequence, event, at, recorded_at_s AS "recordedAtS", salt,
    leaf_index AS "leafIndex" FROM provenance_record WHERE filing_no = ANY($1)`,
};

const selectNumbers = {
  name: 'select numbers',
  // Planned for an empty table, max() would read all numbers of the year.
  text: `SELECT (SELECT filing_no FROM filing WHERE filing_no BETWEEN $1 AND $2 ORDER BY filing_no DESC LIMIT 1) AS last,
    (SELECT max(through) FROM number_gap WHERE kind = 'FILING' AND year = $3) AS floor`,
};

/** How many filings a caller has of a year. */
async function countFilings(queries: Queries, { callerId, year }: FilingsOf): Promise<number> {
  const { from, to } = numbersOf(year);
  const { rows } = await queries.query<{ n: number }>({
    name: 'count filings',
    text: 'SELECT count(*) AS n FROM filing WHERE caller_id = $1 AND filing_no BETWEEN $2 AND $3',
    values: [callerId, from, to],
  });
  return rows[0]?.n ?? 0;
}

/** Filings that a list reads at a time. */
const listedAtOnce = 101;

/** Reads the filings of callers, by an index. */
export const createFilingReads = (queries: Queries): FilingReads => ({
  count: (of) => countFilings(queries, of),
  newestFirst: async function* (owner, year, from) {
    const range = year === undefined ? { from: '', to: 'AS-9999-999999' } : numbersOf(year);
    const { rows: last } = await queries.query<{ filingNo: string; callerId: number }>(
      'SELECT filing_no AS "filingNo", caller_id AS "callerId" FROM filing WHERE id = $1',
      [from],
    );
    if (last[0] !== undefined && last[0].callerId !== owner) return;
    let below: string | undefined = last[0]?.filingNo;
    while (true) {
      const { rows } = await queries.query<ListedFiling>({
        name: 'filings of a caller',
        text: `SELECT id, filing_no AS "filingNo", leaf_index AS "leafIndex", erased_at_s AS "erasedAtS" FROM filing
          WHERE caller_id = $1 AND filing_no BETWEEN $2 AND $3 AND filing_no < $4 ORDER BY filing_no DESC LIMIT $5`,
        values: [owner, range.from, range.to, below ?? 'AS-9999-9999999', listedAtOnce],
      });
      yield* rows;
      below = rows.at(-1)?.filingNo;
      if (below === undefined || rows.length < listedAtOnce) return;
    }
  },
  caps: async (year, limit) => {
    const { from, to } = numbersOf(year);
    const { rows } = await queries.query<CapUse>({
      name: 'caps',
      text: `SELECT name AS platform, filings, filing_cap AS cap FROM caller CROSS JOIN LATERAL (
          SELECT count(*) AS filings FROM filing WHERE caller_id = caller.id AND filing_no BETWEEN $1 AND $2
        ) AS counted
        WHERE filing_cap IS NOT NULL ORDER BY filings::float8 / filing_cap DESC, caller.id LIMIT $3`,
      values: [from, to, limit],
    });
    return rows;
  },
});
