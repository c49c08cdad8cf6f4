/** The first 64 bits of a digest. */
export interface Fingerprint {
  readonly high: number;
  readonly low: number;
}

/** A number from 1 to 2^32 - 1 for each of many fingerprints, in few bytes: a hash table with open addressing. */
export interface FingerprintTable {
  /** The number of a fingerprint, if it is there. */
  get(fingerprint: Fingerprint): number | undefined;
  /** Adds a fingerprint, or gives one that is there another number. */
  set(fingerprint: Fingerprint, value: number): void;
}

/** Words of a slot: both halves of a fingerprint and its number, which is 0 in a slot that is free. */
const slotWords = 3;
const slotsAtFirst = 1_024;

export function createFingerprintTable(): FingerprintTable {
  let words = new Uint32Array(slotsAtFirst * slotWords);
  /** Slots less one; their number is a power of two. */
  let mask = slotsAtFirst - 1;
  let taken = 0;

  /** Where a fingerprint is, or the free slot that it would take. */
  function placeOf({ high, low }: Fingerprint): number {
    for (let slot = low & mask; ; slot = (slot + 1) & mask) {
      const place = slot * slotWords;
      if (words[place + 2] === 0 || (words[place] === high && words[place + 1] === low)) return place;
    }
  }

  function set(fingerprint: Fingerprint, value: number): void {
    const place = placeOf(fingerprint);
    if (words[place + 2] === 0) taken += 1;
    words[place] = fingerprint.high;
    words[place + 1] = fingerprint.low;
    words[place + 2] = value;
    // Two thirds are taken at most, so that searches stay short.
    if (taken * 3 > mask * 2) grow();
  }

  function grow(): void {
    const before = words;
    words = new Uint32Array(before.length * 2);
    mask = mask * 2 + 1;
    taken = 0;
    for (let place = 0; place < before.length; place += slotWords) {
      const [high = 0, low = 0, value = 0] = before.subarray(place, place + slotWords);
      if (value !== 0) set({ high, low }, value);
    }
  }

  return { get: (fingerprint) => words[placeOf(fingerprint) + 2] || undefined, set };
}
