import type Sqlite from 'better-sqlite3';
import type { Event } from '../../domain/event.ts';
import { yearOfFiling } from '../../domain/filing.ts';
import { columnOf } from '../engine/column-name.ts';
import {
  events,
  nonces,
  type PortableRow,
  type PortableTable,
  type PortableWrites,
  pageRows,
} from '../engine/portable-tables.ts';
import { readEntries, type SpentNonce, windowOf, writeEntries } from './admission.ts';
import { details, eventsPerMark, eventsPerRow, lineOf, readLine } from './outbox.ts';

/** A table, or what is laid out otherwise on SQLite, as rows of its portable form. */
interface Form {
  count(): number;
  rows(): Iterable<PortableRow>;
  write(rows: readonly PortableRow[]): void;
}

/** The tables of a database in their portable form. The caller begins a transaction to write in. */
export function createPortable(client: Sqlite.Database): PortableWrites {
  const forms = new Map<PortableTable, Form>([
    [events, eventForm(client)],
    [nonces, nonceForm(client)],
  ]);
  const formOf = (table: PortableTable): Form => {
    const form =
      forms.get(table) ?? (table.name === 'filing' ? filingForm(client, table) : tableForm(client, table));
    forms.set(table, form);
    return form;
  };
  return {
    count: async (table) => formOf(table).count(),
    pages: async function* (table) {
      let page: PortableRow[] = [];
      for (const row of formOf(table).rows()) {
        page.push(row);
        if (page.length < pageRows) continue;
        yield page;
        page = [];
      }
      if (page.length > 0) yield page;
    },
    write: async (table, rows) => formOf(table).write(rows),
  };
}

const quoted = (columns: readonly string[]): string => columns.map((name) => `"${name}"`).join(', ');

/** The only column of the only row. */
const numberOf = (client: Sqlite.Database, query: string): number =>
  client.prepare<[], number>(query).pluck().get() ?? 0;

function insertInto(client: Sqlite.Database, table: string, columns: readonly string[]) {
  const insert = client.prepare(
    `INSERT INTO "${table}" (${quoted(columns)}) VALUES (${columns.map(() => '?').join(', ')})`,
  );
  return (row: PortableRow) => insert.run(columns.map((name) => row[name]));
}

function tableForm(client: Sqlite.Database, { name, columns, key }: PortableTable): Form {
  const insert = insertInto(client, name, columns);
  return {
    count: () => numberOf(client, `SELECT count(*) FROM "${name}"`),
    rows: () =>
      client
        .prepare<[], PortableRow>(`SELECT ${quoted(columns)} FROM "${name}" ORDER BY ${quoted(key)}`)
        .iterate(),
    write: (rows) => rows.forEach(insert),
  };
}

/** Filings name the filing of their caller and year before them. */
function filingForm(client: Sqlite.Database, table: PortableTable): Form {
  const insert = insertInto(client, table.name, [...table.columns, 'previous_id']);
  const lastOf = new Map<string, unknown>();
  return {
    ...tableForm(client, table),
    write: (rows) => {
      for (const row of rows) {
        const chain = `${row.caller_id} ${yearOfFiling(String(row.filing_no))}`;
        insert({ ...row, previous_id: lastOf.get(chain) ?? null });
        lastOf.set(chain, row.id);
      }
    },
  };
}

/** Events share rows, and each names the position of the one before it of its caller. */
function eventForm(client: Sqlite.Database): Form {
  const insertRow = insertInto(client, 'event_log', ['id', 'first', 'newest_at_s', 'lines']);
  const insertMark = insertInto(client, 'event_mark', ['caller_id', 'sequence', 'position']);
  const lastOf = new Map<number, number>();

  function line(event: Event): string {
    const { callerId, sequence, position } = event;
    const previous = lastOf.get(callerId) ?? 0;
    lastOf.set(callerId, position);
    if (sequence % eventsPerMark === 0) insertMark({ caller_id: callerId, sequence, position });
    return lineOf(event, sequence, previous);
  }

  return {
    count: () => numberOf(client, 'SELECT coalesce(sum(id - first + 1), 0) FROM event_log'),
    rows: function* () {
      const rows = client.prepare<[], { readonly first: number; readonly lines: string }>(
        'SELECT first, lines FROM event_log ORDER BY id',
      );
      for (const { first, lines } of rows.iterate())
        for (const [index, text] of lines.split('\n').entries())
          yield toRow({ ...readLine(text), position: first + index });
    },
    write: (rows) => {
      for (const shared of inRows(rows.map(toEvent))) {
        const [first, newest] = [shared[0], shared.at(-1)];
        if (first === undefined || newest === undefined) continue;
        insertRow({
          id: newest.position,
          first: first.position,
          newest_at_s: Math.floor(newest.atMs / 1_000),
          lines: shared.map(line).join('\n'),
        });
      }
    },
  };
}

/** Groups events for rows: those of a row have positions without a gap. */
function inRows(all: readonly Event[]): readonly (readonly Event[])[] {
  const groups: Event[][] = [];
  for (const event of all) {
    const group = groups.at(-1);
    const follows = group?.at(-1)?.position === event.position - 1 && group.length < eventsPerRow;
    if (group !== undefined && follows) group.push(event);
    else groups.push([event]);
  }
  return groups;
}

const members = ['position', 'callerId', 'sequence', 'type', 'atMs', ...details] as const;

const toRow = (event: Event): PortableRow =>
  Object.fromEntries(members.map((name) => [columnOf(name), event[name] ?? null]));

const toEvent = (row: PortableRow): Event =>
  Object.fromEntries(members.map((name) => [name, row[columnOf(name)] ?? undefined])) as unknown as Event;

/** Nonces share rows, by the window of time in which they were spent. A later entry replaces an earlier one. */
function nonceForm(client: Sqlite.Database): Form {
  const insert = insertInto(client, 'spent_nonces', ['id', 'window', 'entries']);

  function read(): readonly PortableRow[] {
    const entries = client.prepare<[], Buffer>('SELECT entries FROM spent_nonces ORDER BY id').pluck().all();
    const spent = new Map(
      entries.flatMap(readEntries).map(({ fingerprint, atS }) => [signedOf(fingerprint), atS]),
    );
    return [...spent]
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([fingerprint, atS]) => ({ fingerprint: `${fingerprint}`, at_s: atS }));
  }

  return {
    count: () => read().length,
    rows: read,
    write: (rows) => {
      let id = numberOf(client, 'SELECT max(id) FROM spent_nonces');
      for (const [window, spent] of Map.groupBy(rows.map(toNonce), ({ atS }) => windowOf(atS))) {
        id += 1;
        insert({ id, window, entries: writeEntries(spent) });
      }
    },
  };
}

/** The bytes of a fingerprint as a signed number, which is how PostgreSQL keeps them. */
function signedOf({ high, low }: SpentNonce['fingerprint']): bigint {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt32LE(high, 0);
  bytes.writeUInt32LE(low, 4);
  return bytes.readBigInt64LE(0);
}

function toNonce({ fingerprint, at_s: atS }: PortableRow): SpentNonce {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(BigInt(String(fingerprint)));
  return {
    fingerprint: { high: bytes.readUInt32LE(0), low: bytes.readUInt32LE(4) },
    atS: Number(atS),
  };
}
