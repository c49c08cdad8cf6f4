/** A page of a list, in the order that its command states. */
export interface Page<T> {
  readonly items: readonly T[];
  /** Where the next page begins; undefined on the last. */
  readonly next: number | undefined;
}

/** Selects a page of a list. */
export interface PageQuery {
  /** `next` of the previous page; undefined for the first. */
  readonly from: number | undefined;
  /** How many items at most, at least 1. */
  readonly size: number;
}

/** Page size when all items are read. */
const itemsPerPage = 100;

/** Yields all items of a list, in its order. */
export async function* allOf<T>(list: (page: PageQuery) => Promise<Page<T>>): AsyncGenerator<T> {
  let from: number | undefined;
  do {
    const page = await list({ from, size: itemsPerPage });
    yield* page.items;
    from = page.next;
  } while (from !== undefined);
}
