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
