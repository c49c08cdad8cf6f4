import { and, asc, type Column, desc, gt, lt, type SQL } from 'drizzle-orm';
import type { Page, PageQuery } from '../paging.ts';

/** A query that conditions can be added to. */
interface DynamicQuery<Row> {
  where(condition: SQL | undefined): DynamicQuery<Row>;
  orderBy(order: SQL): DynamicQuery<Row>;
  limit(rows: number): DynamicQuery<Row>;
  all(): Promise<Row[]>;
}

/** Reads the rows of a page, and one more to know whether there is a next page. The lowest id comes first. */
export const oldestFirst = <Row>(query: DynamicQuery<Row>, id: Column, page: PageQuery, condition?: SQL) =>
  rowsOf(query, asc(id), page, and(condition, page.from === undefined ? undefined : gt(id, page.from)));

/** Likewise. The highest id comes first. */
export const newestFirst = <Row>(query: DynamicQuery<Row>, id: Column, page: PageQuery, condition?: SQL) =>
  rowsOf(query, desc(id), page, and(condition, page.from === undefined ? undefined : lt(id, page.from)));

const rowsOf = <Row>(
  query: DynamicQuery<Row>,
  order: SQL,
  { size }: PageQuery,
  condition?: SQL,
): Promise<Row[]> =>
  query
    .where(condition)
    .orderBy(order)
    .limit(size + 1)
    .all();

/** Bytes of the items of a page as JSON, at most. A page always has its first item. */
const pageBytesMax = 256 * 1_024;

/** Bytes that a response adds to an item: computed members, and the longer forms of times and names. */
const addedBytes = 256;

/** Bytes that a response adds to each part of an item. */
const addedToPart = 32;

/** Counts the bytes of a page. Returns for each item, in order, whether it fits. */
export function createRoom(): (item: unknown) => boolean {
  let bytes = 0;
  return (item) => {
    const isFirst = bytes === 0;
    bytes += addedBytes + jsonBytes(item);
    return isFirst || bytes <= pageBytesMax;
  };
}

/**
 * Makes a page of rows in order of their id; `next` is the id of the last row shown. It ends early where it has no room for
 * the next item.
 */
export async function pageOf<Row extends { readonly id: number }, T>(
  rows: readonly Row[],
  { size }: PageQuery,
  toItem: (row: Row) => T | Promise<T>,
): Promise<Page<T>> {
  const fits = createRoom();
  const items: T[] = [];
  let last: number | undefined;
  for (const row of rows) {
    if (items.length === size) return { items, next: last };
    const item = await toItem(row);
    if (!fits(item)) return { items, next: last };
    items.push(item);
    last = row.id;
  }
  return { items, next: undefined };
}

/** An upper bound of the bytes of a value as JSON. */
function jsonBytes(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(JSON.stringify(value));
  // Bytes become a text, in which the longest escapes have six characters.
  if (value instanceof Uint8Array) return 6 * value.length;
  if (typeof value !== 'object' || value === null) return 20;
  let bytes = addedToPart;
  for (const name in value) bytes += name.length + 4 + jsonBytes((value as Record<string, unknown>)[name]);
  return bytes;
}
