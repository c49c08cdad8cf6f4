/** A page of a list, in the order that its verb states. */
export interface Page<T> {
  readonly items: readonly T[];
  /** Where the next page begins; undefined on the last. */
  readonly next: number | undefined;
}

/** Which page of a list. */
export interface PageQuery {
  /** `next` of the page before; undefined for the first. */
  readonly from: number | undefined;
  /** How many items at most, at least 1. */
  readonly size: number;
}

/** Items read at a time where all of a list are wanted. */
const itemsPerPage = 100;

/** All items of a list, in its order. */
export async function* allOf<T>(list: (page: PageQuery) => Promise<Page<T>>): AsyncGenerator<T> {
  let from: number | undefined;
  do {
    const page = await list({ from, size: itemsPerPage });
    yield* page.items;
    from = page.next;
  } while (from !== undefined);
}
