import type { Page, PageQuery } from '../paging.ts';

/** How many rows to read for a page: one more than it shows tells whether there is a next one. */
export const rowsFor = ({ size }: PageQuery): number => size + 1;

/** Makes a page of rows in order of their id; `next` is the id of the last row shown. */
export function pageOf<Row extends { readonly id: number }, T>(
  rows: readonly Row[],
  { size }: PageQuery,
  toItem: (row: Row) => T,
): Page<T> {
  const shown = rows.slice(0, size);
  return { items: shown.map(toItem), next: rows.length > size ? shown.at(-1)?.id : undefined };
}
