/** An item of a fair queue. It is in one queue at a time. */
interface Queued<Item> {
  /** The share that it uses. */
  readonly share: number;
  /** Its cost, at least 1. */
  readonly cost: number;
  /** The next item of the same share. The queue sets it. */
  next: Item | undefined;
}

/** The items of a share. There are as many shares as callers. */
interface Line<Item> {
  first: Item | undefined;
  last: Item | undefined;
  /** The cost that it may still use. */
  credit: number;
  /** The share whose turn is next. Without meaning while this one has no items. */
  next: Line<Item> | undefined;
}

/**
 * A fair queue by deficit round robin: the shares that have items take turns, and each may use as much as any other, however
 * many items it has. Items of one share keep their order. Limits, in costs: `turn` is what a share may use in each turn; an item
 * that costs more waits until its share has saved enough. `batch` is what a batch may cost, unless it is a single item.
 */
export function createFairQueue<Item extends Queued<Item>>({
  turn,
  batch,
}: Record<'turn' | 'batch', number>) {
  const lines = new Map<number, Line<Item>>();
  /** The share whose turn it is, and the one whose turn is last. */
  let current: Line<Item> | undefined;
  let last: Line<Item> | undefined;
  /** Whether the current share has got its credit: a batch may end within its turn. */
  let isTurnBegun = false;
  let length = 0;

  function append(line: Line<Item>): void {
    line.next = undefined;
    if (last === undefined) current = line;
    else last.next = line;
    last = line;
  }

  function endTurn(line: Line<Item>): void {
    isTurnBegun = false;
    current = line.next;
    if (current === undefined) last = undefined;
  }

  function remove(line: Line<Item>, item: Item): void {
    length -= 1;
    line.credit -= item.cost;
    line.first = item.next;
    item.next = undefined;
    if (line.first !== undefined) return;
    line.last = undefined;
    // A share that waits for nothing saves nothing.
    line.credit = 0;
    endTurn(line);
  }

  function lineOf(share: number): Line<Item> {
    const known = lines.get(share);
    if (known !== undefined) return known;
    const line = { first: undefined, last: undefined, credit: 0, next: undefined };
    lines.set(share, line);
    return line;
  }

  return {
    length: (): number => length,
    add: (item: Item): void => {
      const line = lineOf(item.share);
      length += 1;
      if (line.last === undefined) {
        line.first = item;
        append(line);
      } else {
        line.last.next = item;
      }
      line.last = item;
    },
    /**
     * Removes and returns the next batch, in order; empty if nothing waits. An item that costs more than a turn is a batch of its
     * own.
     */
    take: (): Item[] => {
      const taken: Item[] = [];
      let cost = 0;
      for (let line = current; line !== undefined; line = current) {
        if (!isTurnBegun) line.credit += turn;
        isTurnBegun = true;
        const item = line.first as Item;
        if (item.cost > line.credit) {
          endTurn(line);
          append(line);
          continue;
        }
        const isAlone = item.cost > turn;
        if (taken.length > 0 && (isAlone || cost + item.cost > batch)) break;
        remove(line, item);
        taken.push(item);
        cost += item.cost;
        if (isAlone) break;
      }
      return taken;
    },
  };
}
