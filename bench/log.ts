import type { Command } from '../src/store/store.ts';
import { type LoggingCore, openLoggingCore } from './logging-core.ts';
import { median } from './measurements.ts';

/** How many leaves there are, and how often it is measured. */
export interface LogPlan {
  /** Of the large log; a million unless it is to be quick. */
  readonly leaves: number;
  readonly rounds: number;
}

/** Leaves of the small log that appending is compared to. */
const fewLeaves = 1_000;
/** Filings of a transaction, and transactions and questions of a round. */
const filingsAtOnce = 32;
const transactions = 200;
const questions = 200;

const tileWidth = 256;
/** A step through the tree that has no divisor in common with sizes that are round. */
const stride = 7_919;

/** The most that an append to the large log may take, as a multiple of what it takes to the small one. */
const appendRatioMax = 1.15;
/** The most milliseconds that a proof may take. */
const proofMsMax = 2;

/**
 * Measures the evidence log in the store's core, without listeners, in a folder that may have a database already: processor
 * time of this thread, since a disk that is shared with others says nothing of the log. Lines to print.
 */
export async function* measureLog(
  { leaves, rounds }: LogPlan,
  dataDir: string,
  smallDir: string,
): AsyncGenerator<string> {
  const small = await openLoggingCore(smallDir);
  const large = await openLoggingCore(dataDir);
  try {
    await small.fill(fewLeaves);
    await large.fill(leaves);
    yield* appendLines(small, large, rounds);
    yield* questionLines(large, rounds);
  } finally {
    small.close();
    large.close();
  }
}

async function* appendLines(small: LoggingCore, large: LoggingCore, rounds: number): AsyncGenerator<string> {
  const [few, many] = [await small.leaves(), await large.leaves()];
  const append = (log: LoggingCore) => () => log.file(transactions, filingsAtOnce);
  const figures: { readonly ofFew: number; readonly ofMany: number }[] = [];
  for (let round = 0; round < rounds; round += 1) {
    // Each round begins with the other, since what one leaves to the caches of the machine slows down the next.
    const [first, second] = round % 2 === 0 ? [small, large] : [large, small];
    const [one, other] = [await cpuUs(append(first)), await cpuUs(append(second))];
    figures.push(round % 2 === 0 ? { ofFew: one, ofMany: other } : { ofFew: other, ofMany: one });
  }
  const filings = transactions * filingsAtOnce;
  const ratios = figures.map(({ ofFew, ofMany }) => ofMany / ofFew);
  yield line(`a filing, from ${few} leaves on`, median(figures.map(({ ofFew }) => ofFew)) / filings);
  yield line(`a filing, from ${many} leaves on`, median(figures.map(({ ofMany }) => ofMany)) / filings);
  const range = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`;
  const bound = `required: at most ${appendRatioMax}`;
  yield `  the latter ÷ the former          ${median(ratios).toFixed(2)} (rounds ${range})   ${bound}`;
}

async function* questionLines(log: LoggingCore, rounds: number): AsyncGenerator<string> {
  const size = await log.leaves();
  const width = Math.min(tileWidth, size);
  const leaf = (nth: number) => (nth * stride) % size;
  const tile = (nth: number) => leaf(nth) % Math.floor(size / width);
  const asked: Record<string, (nth: number) => Command> = {
    'the tree': () => ({ kind: 'GetTree' }),
    'an inclusion proof': (nth) => ({ kind: 'ProveInclusion', index: leaf(nth), size }),
    'a consistency proof': (nth) => ({ kind: 'ProveConsistency', from: leaf(nth), to: size }),
    'a full tile of level 0': (nth) => ({ kind: 'ReadSubtrees', level: 0, place: tile(nth) * width, width }),
    'a full entry bundle': (nth) => ({ kind: 'ReadLeaves', index: tile(nth) * width, width }),
  };
  for (const [what, ask] of Object.entries(asked)) {
    const ms: number[] = [];
    const us = await cpuUs(async () => {
      for (let nth = 0; nth < rounds * questions; nth += 1) ms.push(await elapsedMs(() => log.ask(ask(nth))));
    });
    const bound = what.endsWith('proof') ? `   required: below ${proofMsMax} ms` : '';
    yield `${line(what, us / ms.length)}, median ${median(ms).toFixed(3)} ms${bound}`;
  }
}

/** The processor time of this thread that something takes, in microseconds. */
async function cpuUs(work: () => Promise<void>): Promise<number> {
  const before = process.threadCpuUsage();
  await work();
  const { user, system } = process.threadCpuUsage(before);
  return user + system;
}

async function elapsedMs(work: () => Promise<void>): Promise<number> {
  const before = performance.now();
  await work();
  return performance.now() - before;
}

const line = (what: string, us: number): string => `  ${what.padEnd(32)} ${us.toFixed(1)} µs CPU`;
