/** A safe gap is at least so many times the busiest known period. */
const busiestFactor = 10;

/**
 * The last number of a year to skip if the numbers issued after `last` are unknown: half of the remaining ones, and at least
 * ten times as many as `busiest`, the most numbers issued in a period as long as the unknown one. A result above `max`, the
 * last number of a year, means that no gap is safe.
 */
export function safeNumberFloor(last: number, max: number, busiest: number): number {
  return Math.max(last + Math.ceil((max - last) / 2), last + busiestFactor * busiest);
}

/**
 * Numbers that a restore skips at random, at most. Two restores of one backup then start at the same number once in 10,000
 * times. A restore costs at most 1 % of the filing numbers of a year.
 */
const randomStretchMax = 10_000;
/** The largest part of the remaining numbers that it skips, if that is less. */
const randomShare = 0.1;

/** The numbers to skip at random after `last`, so that restores of one backup start at different ones. `random` is from 0 to 1. */
export function randomStretch(last: number, max: number, random: number): number {
  return Math.floor(random * Math.min(randomStretchMax, (max - last) * randomShare));
}

/** The largest number of times, ascending Unix seconds, within any period of `lengthS`. */
export function busiestStretch(times: readonly number[], lengthS: number): number {
  let most = 0;
  let first = 0;
  for (const [index, time] of times.entries()) {
    while (time - (times[first] ?? time) > lengthS) first += 1;
    most = Math.max(most, index - first + 1);
  }
  return most;
}
