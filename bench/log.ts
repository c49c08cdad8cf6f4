import { randomUUID } from 'node:crypto';
import { exampleArtwork } from '../src/domain/example.ts';
import { filingNumber, sequenceOfFiling } from '../src/domain/filing.ts';
import type { Reply } from '../src/store/engine/failure.ts';
import type { CallerRef } from '../src/store/filing-commands.ts';
import { allOf, type Page } from '../src/store/paging.ts';
import { type Core, openCore } from '../src/store/sqlite/core.ts';
import type { Command, StoreRequest } from '../src/store/store.ts';
import { median, rangeOf } from './measurements.ts';

/** How many leaves there are, and how often it is measured. */
export interface LogPlan {
  /** Of the large log; a million unless it is to be quick. */
  readonly leaves: number;
  readonly rounds: number;
}

/** Leaves of the small log that the large one is compared to. */
const fewLeaves = 10_000;
/** Filings of a transaction, and transactions and questions of a round. */
const filingsAtOnce = 32;
const transactions = 200;
const questions = 200;

const tileWidth = 256;
/** A step through the tree that has no divisor in common with sizes that are round. */
const stride = 7_919;

/** Calls about provenance of a transaction. */
const readsAtOnce = 32;

/** The most that a call may take with the large log, as a multiple of what it takes with the small one. */
const costRatioMax = 1.1;
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
    await small.fill(Math.min(fewLeaves, leaves));
    await large.fill(leaves);
    yield* costLines('provenance', small, large, rounds, (log) => log.read(transactions, readsAtOnce));
    yield* costLines('a filing', small, large, rounds, (log) => log.file(transactions, filingsAtOnce));
    yield* questionLines(large, rounds);
  } finally {
    small.close();
    large.close();
  }
}

/** Compares the processor time of calls with a small and with a large log. */
async function* costLines(
  what: string,
  small: LoggingCore,
  large: LoggingCore,
  rounds: number,
  work: (log: LoggingCore) => Promise<number>,
): AsyncGenerator<string> {
  const [few, many] = [await small.leaves(), await large.leaves()];
  const usEach = async (log: LoggingCore) => {
    let calls = 0;
    const us = await cpuUs(async () => {
      calls = await work(log);
    });
    return us / calls;
  };
  const figures: { readonly ofFew: number; readonly ofMany: number }[] = [];
  // What both leave to the caches of the machine is not measured.
  for (const log of [small, large]) await work(log);
  for (let round = 0; round < rounds; round += 1) {
    // Each round begins with the other, since what one leaves to the caches slows down the next.
    const [first, second] = round % 2 === 0 ? [small, large] : [large, small];
    const [one, other] = [await usEach(first), await usEach(second)];
    figures.push(round % 2 === 0 ? { ofFew: one, ofMany: other } : { ofFew: other, ofMany: one });
  }
  const ratios = figures.map(({ ofFew, ofMany }) => ofMany / ofFew);
  yield line(`${what}, from ${few} leaves on`, median(figures.map(({ ofFew }) => ofFew)));
  yield line(`${what}, from ${many} leaves on`, median(figures.map(({ ofMany }) => ofMany)));
  const bound = `required: at most ${costRatioMax}`;
  yield `  the latter ÷ the former          ${median(ratios).toFixed(2)} ${rangeOf(ratios)}   ${bound}`;
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

/** A store without thread and listeners. Its filings are all leaves of its log. */
type LoggingCore = Awaited<ReturnType<typeof openLoggingCore>>;

const artwork = { ...exampleArtwork, price: 128_000_000n };

/** Filings of a transaction while the store is filled. */
const filledAtOnce = 1_000;
/** Those that fill it are a minute apart: a year has numbers enough for them, and the last one is of now. */
const apartMs = 60_000;

/** Opens the store in a folder that has platforms. */
async function openLoggingCore(dataDir: string) {
  const core = openCore({ dataDir, environment: 'sandbox', currency: 'CNY', opening: 'EXISTING' });
  const callers = await callersOf(core);
  let filed = 0;
  let read = 0;
  /** With the name, which the leaf of a filing commits to. */
  const callerOf = (nth: number) => callers[nth % callers.length] ?? noPlatforms();

  function filing(atMs: number) {
    const by = callerOf(filed);
    filed += 1;
    const timestamp = `${new Date(atMs).toISOString().slice(0, 19)}+00:00`;
    return { kind: 'FileArtwork', artwork, at: { atMs, timestamp }, by } as const;
  }
  function signed(effect: Command, callerId: number, atMs: number): StoreRequest {
    const month = new Date(atMs).toISOString().slice(0, 7);
    const admission = {
      nowS: Math.floor(atMs / 1_000),
      nonce: { keyId: callerId, nonce: randomUUID() },
      quota: { callerId, month, limit: undefined, take: true },
    };
    return { admission, effect };
  }
  function signedFiling(): StoreRequest {
    const atMs = Date.now();
    const effect = filing(atMs);
    return signed(effect, effect.by.callerId, atMs);
  }
  const carryOut = async (units: readonly StoreRequest[]) => (await core.executeBatch(units)).map(resultOf);
  /** The years with filings, and the last number of each. */
  async function lastNumbers() {
    const newest = new Date().getUTCFullYear();
    const years = [newest - 2, newest - 1, newest];
    const pages = await carryOut(
      years.map((year) => {
        const filter = { owner: undefined, year };
        return { effect: { kind: 'ListFilings', filter, page: { from: undefined, size: 1 } } };
      }),
    );
    return years.map((year, nth) => {
      const [filing] = (pages[nth] as Page<{ readonly filingNo: string }>).items;
      return { year, last: filing === undefined ? 0 : sequenceOfFiling(filing.filingNo) };
    });
  }
  async function leaves(): Promise<number> {
    const [tree] = await carryOut([{ effect: { kind: 'GetTree' } }]);
    return (tree as { readonly size: number }).size;
  }

  return {
    /** How many leaves its tree has. */
    leaves,
    /** Files until it has so many. */
    fill: async (wanted: number) => {
      const endMs = Date.now();
      // Without what a call of a platform is let in by: that of earlier times is forgotten.
      for (let left = wanted - (await leaves()); left > 0; left = wanted - (await leaves())) {
        // The first of all leaves says that the log was begun.
        const length = Math.max(1, Math.min(left - 1, filledAtOnce));
        await carryOut(
          Array.from({ length }, (_, nth) => ({ effect: filing(endMs - (left - nth) * apartMs) })),
        );
      }
    },
    /** Carries out so many transactions with so many signed filings each. Returns the number of calls. */
    file: async (transactions: number, filings: number) => {
      for (let left = transactions; left > 0; left -= 1)
        await carryOut(Array.from({ length: filings }, signedFiling));
      return transactions * filings;
    },
    /** The same with calls about the provenance of filings that are spread over all that there are. */
    read: async (transactions: number, calls: number) => {
      const years = await lastNumbers();
      const sum = years.reduce((filings, { last }) => filings + last, 0);
      const numberOf = (nth: number): string => {
        let sequence = 1 + ((nth * stride) % sum);
        for (const { year, last } of years) {
          if (sequence <= last) return filingNumber(year, sequence);
          sequence -= last;
        }
        throw new Error('There are fewer filings.');
      };
      for (let left = transactions; left > 0; left -= 1) {
        const atMs = Date.now();
        const units = Array.from({ length: calls }, () => {
          read += 1;
          const effect = { kind: 'GetProvenance', filingNo: numberOf(read) } as const;
          return signed(effect, callerOf(read).callerId, atMs);
        });
        const found = await carryOut(units);
        if (found.includes(undefined)) throw new Error('A filing is gone.');
      }
      return transactions * calls;
    },
    /** Asks for something that only reads. */
    ask: async (command: Command) => {
      const [found] = await carryOut([{ effect: command }]);
      if (found === undefined) throw new Error(`The log does not have what ${command.kind} asks for.`);
    },
    close: core.close,
  };
}

function noPlatforms(): never {
  throw new Error('The folder has no platforms.');
}

/** The platforms of the folder. */
async function callersOf(core: Core): Promise<readonly CallerRef[]> {
  const keys = allOf(async (page) => {
    const [reply] = await core.executeBatch([{ effect: { kind: 'ListKeys', page } }]);
    return resultOf(reply) as Page<CallerRef>;
  });
  return (await Array.fromAsync(keys)).map(({ callerId, caller }) => ({ callerId, caller }));
}

/** What a unit came to. Throws where that is an error or a failure. */
function resultOf(reply: Reply | undefined): unknown {
  if (reply === undefined || 'failure' in reply) throw new Error('The store cannot work.');
  if (reply.outcome.kind !== 'DONE') throw new Error(`The store answers ${JSON.stringify(reply.outcome)}.`);
  return reply.outcome.result;
}
