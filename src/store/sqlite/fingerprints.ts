/** The first 64 bits of a digest. */
export interface Fingerprint {
  readonly high: number;
  readonly low: number;
}

/** A number from 1 to 2^32 - 1 for each of many fingerprints, in few bytes: a hash table with open addressing. */
export interface FingerprintTable {
  /** The number of a fingerprint, if it is there. */
  get(fingerprint: Fingerprint): number | undefined;
  /** How many fingerprints there are. */
  size(): number;
  /** Adds a fingerprint, or gives one that is there another number. */
  set(fingerprint: Fingerprint, value: number): void;
}

/** Words of a slot: both halves of a fingerprint and its number, which is 0 in a slot that is free. */
const slotWords = 3;
const slotsAtFirst = 1_024;

export function createFingerprintTable(): FingerprintTable {
  let words = new Uint32Array(slotsAtFirst * slotWords);
  /** FairPool less one; their number is a power of two. */
  let mask = slotsAtFirst - 1;
  let taken = 0;

  /** Where a fingerprint is, or the free slot that it would take. */
  function placeOf(high: number, low: number): number {
    for (let slot = low & mask; ; slot = (slot + 1) & mask) {
      const place = slot * slotWords;
      if (words[place + 2] === 0 || (words[place] === high && words[place + 1] === low)) return place;
    }
  }

  function put(high: number, low: number, value: number): void {
    const place = placeOf(high, low);
    if (words[place + 2] === 0) taken += 1;
    words[place] = high;
    words[place + 1] = low;
    words[place + 2] = value;
  }

  /** Calls wait for it, so it makes no object for each. */
  function grow(): void {
    const before = words;
    words = new Uint32Array(before.length * 2);
    mask = mask * 2 + 1;
    taken = 0;
    for (let place = 0; place < before.length; place += slotWords) {
      const value = before[place + 2] ?? 0;
      if (value !== 0) put(before[place] ?? 0, before[place + 1] ?? 0, value);
    }
  }

  return {
    size: () => taken,
    get: ({ high, low }) => words[placeOf(high, low) + 2] || undefined,
    set: ({ high, low }, value) => {
      put(high, low, value);
      // Two thirds are taken at most, so that searches stay short.
      if (taken * 3 > mask * 2) grow();
    },
  };
}
