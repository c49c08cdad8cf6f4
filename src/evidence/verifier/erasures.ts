import { instant } from './dating.ts';
import type { LogEventLeaf } from './leaf.ts';

/** Years that a registry keeps records at least. */
const retentionYears = 5;

/** The records that were not erased, according to the log events RECORDS_ERASED. Four bytes per leaf. */
export interface KeptRecords {
  /** Adds a leaf: the time of a record in Unix seconds, undefined for a log event. */
  add(timeS: number | undefined): void;
  /** Removes the records that a log event erases. Returns what is wrong with the event, if anything. */
  erase(event: LogEventLeaf): string | undefined;
  /** By leaf: the time of a record that was not erased, 0 for all others. */
  times(): Uint32Array<ArrayBuffer>;
}

/** Continues from the times of an earlier audit. */
export function createKeptRecords(from: Uint32Array): KeptRecords {
  let times = Uint32Array.from(from);
  let size = from.length;

  /** Returns how many leaves were erased, or what is wrong with them. */
  function eraseLeaves(text: string, before: number): number | string {
    let [erased, next] = [0, 0];
    for (const range of text.split(',')) {
      const [, first = '', last = first] = /^(\d{1,15})(?:-(\d{1,15}))?$/.exec(range) ?? [];
      if (first === '' || Number(first) < next || Number(last) < Number(first) || Number(last) >= size)
        return `names the leaves that it erases in an unknown form: ${JSON.stringify(range)}`;
      next = Number(last) + 1;
      for (let leaf = Number(first); leaf < next; leaf += 1) {
        const timeS = times[leaf] ?? 0;
        if (timeS === 0) return `erases leaf ${leaf}, which is not a record or was erased before`;
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
      // 0 means that there is no record.
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
        : `says that ${records} records were erased, but names ${erased} leaves`;
    },
    times: () => times.slice(0, size),
  };
}

function yearsBefore(timeS: number, years: number): number {
  const date = new Date(timeS * 1000);
  return date.setUTCFullYear(date.getUTCFullYear() - years) / 1000;
}
