/** How often the busiest stretch that is known has to fit into a safe gap. */
const busiestFactor = 10;

/**
 * The last number of a year to leave out where nobody knows which were given out after `last`: half of those that the year
 * has left, and at least ten times as many as the busiest stretch took that is as long as what is not known. It may
 * be above `max`, the last number that a year can have: then nothing is safe.
 */
export function safeNumberFloor(last: number, max: number, busiest: number): number {
  return Math.max(last + Math.ceil((max - last) / 2), last + busiestFactor * busiest);
}

/**
 * Numbers that a restoration skips at random, at most: two restorations of one backup begin at the same number once in
 * 10,000 times, and one costs 1 % of the filing numbers of a year at most, on average half of that.
 */
const randomStretchMax = 10_000;
/** The part of the numbers left that it skips at most, where that is less: at the end of a year numbers are scarce. */
const randomShare = 0.1;

/** How many more numbers to skip after `last`, so that restorations of one backup begin at different ones; `random` is from 0 to 1. */
export function randomStretch(last: number, max: number, random: number): number {
  return Math.floor(random * Math.min(randomStretchMax, (max - last) * randomShare));
}

/** The most of these times, in seconds and ascending, that lie within any stretch of that length. */
export function busiestStretch(times: readonly number[], lengthS: number): number {
  let most = 0;
  let first = 0;
  for (const [place, time] of times.entries()) {
    while (time - (times[first] ?? time) > lengthS) first += 1;
    most = Math.max(most, place - first + 1);
  }
  return most;
}
