/** An item of a fair queue. */
interface Queued {
  /** The share that it uses. */
  readonly share: number;
  /** Its cost, at least 1. */
  readonly cost: number;
}

/**
 * A fair queue by deficit round robin: the shares that have items take turns, and each may use as much as any other, however
 * many items it has. Items of one share keep their order. Limits, in costs: `turn` is what a share may use in each turn; an item
 * that costs more waits until its share has saved enough. `batch` is what a batch may cost, unless it is a single item.
 */
export function createFairQueue<Item extends Queued>({ turn, batch }: Record<'turn' | 'batch', number>) {
  /** The shares that have items, and the cost that each may still use. The share whose turn it is comes first. */
  const lines = new Map<number, { readonly items: Item[]; credit: number }>();
  /** Whether the first share has got its credit: a batch may end within its turn. */
  let isTurnBegun = false;
  let length = 0;

  return {
    length: (): number => length,
    add: (item: Item): void => {
      length += 1;
      const line = lines.get(item.share);
      if (line === undefined) lines.set(item.share, { items: [item], credit: 0 });
      else line.items.push(item);
    },
    /**
     * Removes and returns the next batch, in order; empty if nothing waits. An item that costs more than a turn is a batch of its
     * own.
     */
    take: (): Item[] => {
      const taken: Item[] = [];
      let cost = 0;
      // A share that goes to the end comes again.
      for (const [share, line] of lines) {
        const { items } = line;
        if (!isTurnBegun) line.credit += turn;
        isTurnBegun = true;
        let isAlone = false;
        for (let item = items[0]; item !== undefined && item.cost <= line.credit; item = items[0]) {
          isAlone = item.cost > turn;
          if (taken.length > 0 && (isAlone || cost + item.cost > batch)) return taken;
          items.shift();
          length -= 1;
          line.credit -= item.cost;
          taken.push(item);
          cost += item.cost;
          if (isAlone) break;
        }
        if (isAlone && items.length > 0) break;
        isTurnBegun = false;
        lines.delete(share);
        // A share that waits for nothing saves nothing.
        if (items.length > 0) lines.set(share, line);
        if (isAlone) break;
      }
      return taken;
    },
  };
}
