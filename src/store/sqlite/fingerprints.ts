/** The first 64 bits of a digest. */
export interface Fingerprint {
  readonly high: number;
  readonly low: number;
}

/** Places for entries. Each takes three words: both halves of a fingerprint and its number, which is 0 in a free place. */
interface Places {
  readonly words: Uint32Array;
  /** How many places there are, a power of two, minus one. */
  readonly mask: number;
}

const entryWords = 3;
const placesAtFirst = 1_024;
/** Places whose entries move into a larger table with each call, so that no call waits for all of them. */
const movedAtOnce = 8;

const createPlaces = (count: number): Places => ({
  words: new Uint32Array(count * entryWords),
  mask: count - 1,
});

/** The offset of the entry of a fingerprint, or of the free place for it. */
function offsetIn({ words, mask }: Places, high: number, low: number): number {
  for (let place = low & mask; ; place = (place + 1) & mask) {
    const offset = place * entryWords;
    if (words[offset + 2] === 0 || (words[offset] === high && words[offset + 1] === low)) return offset;
  }
}

/** As `createFingerprintTable` makes it. */
export type FingerprintTable = ReturnType<typeof createFingerprintTable>;

/**
 * A compact map from fingerprints to numbers from 1 to 2^32 - 1: a hash table with open addressing. At first it has room for
 * `expected` fingerprints.
 */
export function createFingerprintTable(expected = 0) {
  let places = createPlaces(Math.max(placesAtFirst, 2 ** Math.ceil(Math.log2(expected * 1.5 + 2))));
  /** The places before the table grew, until all their entries are moved. */
  let outgrown: Places | undefined;
  /** How many of their words are moved. */
  let moved = 0;
  let size = 0;

  const numberIn = (of: Places, high: number, low: number): number =>
    of.words[offsetIn(of, high, low) + 2] ?? 0;

  function putAt(offset: number, high: number, low: number, number: number): void {
    const { words } = places;
    words[offset] = high;
    words[offset + 1] = low;
    words[offset + 2] = number;
  }

  function moveSome({ words }: Places): void {
    const end = moved + movedAtOnce * entryWords;
    for (; moved < end; moved += entryWords) {
      const [high = 0, low = 0, number = 0] = [words[moved], words[moved + 1], words[moved + 2]];
      if (number === 0) continue;
      const offset = offsetIn(places, high, low);
      // A number that was set since is the newer one.
      if (places.words[offset + 2] === 0) putAt(offset, high, low, number);
    }
    if (moved === words.length) outgrown = undefined;
  }

  function numberOf({ high, low }: Fingerprint): number {
    const number = numberIn(places, high, low);
    return number === 0 && outgrown !== undefined ? numberIn(outgrown, high, low) : number;
  }

  return {
    /** The number of fingerprints. */
    size: (): number => size,
    /** The number of a fingerprint; undefined if it is not in the table. */
    get: (fingerprint: Fingerprint): number | undefined => numberOf(fingerprint) || undefined,
    /** Sets the number of a fingerprint. */
    set: ({ high, low }: Fingerprint, number: number) => {
      const offset = offsetIn(places, high, low);
      const isFree = places.words[offset + 2] === 0;
      if (isFree && (outgrown === undefined || numberIn(outgrown, high, low) === 0)) size += 1;
      putAt(offset, high, low, number);
      if (outgrown !== undefined) moveSome(outgrown);
      // At most two thirds are used, so that searches stay short.
      else if (size * 3 > places.mask * 2) {
        outgrown = places;
        moved = 0;
        places = createPlaces(2 * (places.mask + 1));
      }
    },
  };
}
