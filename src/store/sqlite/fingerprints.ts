/** The first 64 bits of a digest. */
export interface Fingerprint {
  readonly high: number;
  readonly low: number;
}

/** 32-bit words of an entry: both halves of a fingerprint and its number, which is 0 in a free entry. */
const entryWords = 3;
const entriesAtFirst = 1_024;

/** As `createFingerprintTable` makes it. */
export type FingerprintTable = ReturnType<typeof createFingerprintTable>;

/** A compact map from fingerprints to numbers from 1 to 2^32 - 1: a hash table with open addressing. */
export function createFingerprintTable() {
  let words = new Uint32Array(entriesAtFirst * entryWords);
  /** The number of entries, a power of two, minus one. */
  let mask = entriesAtFirst - 1;
  let taken = 0;

  /** The offset of the entry of a fingerprint, or of the free entry for it. */
  function offsetOf(high: number, low: number): number {
    for (let entry = low & mask; ; entry = (entry + 1) & mask) {
      const offset = entry * entryWords;
      if (words[offset + 2] === 0 || (words[offset] === high && words[offset + 1] === low)) return offset;
    }
  }

  function put(high: number, low: number, value: number): void {
    const offset = offsetOf(high, low);
    if (words[offset + 2] === 0) taken += 1;
    words[offset] = high;
    words[offset + 1] = low;
    words[offset + 2] = value;
  }

  /** Doubles the table. It creates no object per entry, because calls wait for it. */
  function grow(): void {
    const before = words;
    words = new Uint32Array(before.length * 2);
    mask = mask * 2 + 1;
    taken = 0;
    for (let offset = 0; offset < before.length; offset += entryWords) {
      const value = before[offset + 2] ?? 0;
      if (value !== 0) put(before[offset] ?? 0, before[offset + 1] ?? 0, value);
    }
  }

  return {
    /** The number of fingerprints. */
    size: (): number => taken,
    /** The number of a fingerprint; undefined if it is not in the table. */
    get: ({ high, low }: Fingerprint): number | undefined => words[offsetOf(high, low) + 2] || undefined,
    /** Sets the number of a fingerprint. */
    set: ({ high, low }: Fingerprint, value: number) => {
      put(high, low, value);
      // At most two thirds are used, so that searches stay short.
      if (taken * 3 > mask * 2) grow();
    },
  };
}
