import { instant } from './dating.ts';
import type { LogEventLeaf } from './leaf.ts';

/** How many years a registry keeps records at least. */
const retentionYears = 5;

/** Which records a log still keeps, by the events RECORDS_ERASED. Four bytes a leaf. */
export interface KeptRecords {
  /** Takes the next leaf: the Unix seconds of a record, undefined for an event of the log. */
  add(timeS: number | undefined): void;
  /** Takes the records out that an event erases; what is wrong with that, undefined if nothing is. */
  erase(event: LogEventLeaf): string | undefined;
  /** By leaf: the time of a record that is kept, 0 for all others. */
  times(): Uint32Array<ArrayBuffer>;
}

/** Goes on from the times of an earlier one. */
export function createKeptRecords(from: Uint32Array): KeptRecords {
  let times = Uint32Array.from(from);
  let size = from.length;

  /** How many leaves were erased, or what is wrong with them. */
  function eraseLeaves(text: string, before: number): number | string {
    let [erased, next] = [0, 0];
    for (const range of text.split(',')) {
      const [, first = '', last = first] = /^(\d{1,15})(?:-(\d{1,15}))?$/.exec(range) ?? [];
      if (first === '' || Number(first) < next || Number(last) < Number(first) || Number(last) >= size)
        return `names the leaves that it erases in a form that is not known: ${JSON.stringify(range)}`;
      next = Number(last) + 1;
      for (let leaf = Number(first); leaf < next; leaf += 1) {
        const timeS = times[leaf] ?? 0;
        if (timeS === 0) return `erases leaf ${leaf}, which is no record or was erased before`;
        if (timeS > before) return `erases leaf ${leaf} of ${instant(timeS)}, after ${instant(before)}`;
        times[leaf] = 0;
        erased += 1;
      }
    }
    return erased;
  }

  return {
    add: (timeS) => {
      if (size === times.length) {
        const longer = new Uint32Array(Math.max(1024, 2 * size));
        longer.set(times);
        times = longer;
      }
      // A time of 0 would say that there is no record.
      times[size] = timeS === undefined ? 0 : Math.min(Math.max(timeS, 1), 0xffff_ffff);
      size += 1;
    },
    erase: ({ timeS, detail }) => {
      const [before, records, leaves] = ['before', 'records', 'leaves'].map((name) => detail.get(name));
      if (typeof before !== 'number' || typeof records !== 'number') return 'does not say what was erased';
      if (before > yearsBefore(timeS, retentionYears))
        return `erases records from less than ${retentionYears} years before ${instant(timeS)}`;
      if (leaves === undefined) return undefined;
      const erased = eraseLeaves(String(leaves), before);
      if (typeof erased === 'string') return erased;
      return erased === records
        ? undefined
        : `says that ${records} records were erased, and names ${erased} leaves`;
    },
    times: () => times.slice(0, size),
  };
}

function yearsBefore(timeS: number, years: number): number {
  const date = new Date(timeS * 1000);
  return date.setUTCFullYear(date.getUTCFullYear() - years) / 1000;
}
