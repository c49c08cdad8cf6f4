import { randomUUID } from 'node:crypto';
import { exampleArtwork } from '../src/domain/example.ts';
import type { Reply } from '../src/store/engine/failure.ts';
import { type Core, openCore } from '../src/store/sqlite/core.ts';
import type { Command, StoreRequest } from '../src/store/store.ts';

/** A store without thread and listeners. Its filings are all leaves of its log. */
export interface LoggingCore {
  /** How many leaves its tree has. */
  leaves(): Promise<number>;
  /** Files until it has so many. */
  fill(leaves: number): Promise<void>;
  /** Carries out so many transactions with so many signed filings each. */
  file(transactions: number, filings: number): Promise<void>;
  /** Asks for something that only reads. */
  ask(command: Command): Promise<void>;
  close(): void;
}

const artwork = { ...exampleArtwork, price: 128_000_000n };

/** Filings of a transaction while the store is filled. */
const filledAtOnce = 1_000;
/** Those that fill it are a minute apart: a year has numbers enough for them, and the last one is of now. */
const apartMs = 60_000;
const platforms = 256;

/** Opens the store in a folder that has platforms. */
export async function openLoggingCore(dataDir: string): Promise<LoggingCore> {
  const core = openCore({ dataDir, environment: 'sandbox', currency: 'CNY', opening: 'EXISTING' });
  const callers = await callersOf(core);
  let filed = 0;

  function filing(atMs: number) {
    const callerId = callers[filed % callers.length] ?? 0;
    filed += 1;
    const timestamp = `${new Date(atMs).toISOString().slice(0, 19)}+00:00`;
    const by = { callerId, caller: `${callerId}` };
    return { kind: 'FileArtwork', artwork, at: { atMs, timestamp }, by } as const;
  }
  function signedFiling(): StoreRequest {
    const atMs = Date.now();
    const effect = filing(atMs);
    const { callerId } = effect.by;
    const admission = {
      nowS: Math.floor(atMs / 1_000),
      nonce: { keyId: callerId, nonce: randomUUID() },
      quota: { callerId, month: effect.at.timestamp.slice(0, 7), limit: undefined, take: true },
    };
    return { admission, effect };
  }
  const carryOut = async (units: readonly StoreRequest[]) => (await core.executeBatch(units)).map(resultOf);
  async function leaves(): Promise<number> {
    const [tree] = await carryOut([{ effect: { kind: 'GetTree' } }]);
    return (tree as { readonly size: number }).size;
  }

  return {
    leaves,
    fill: async (wanted) => {
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
    file: async (transactions, filings) => {
      for (let left = transactions; left > 0; left -= 1)
        await carryOut(Array.from({ length: filings }, signedFiling));
    },
    ask: async (command) => {
      const [found] = await carryOut([{ effect: command }]);
      if (found === undefined) throw new Error(`The log does not have what ${command.kind} asks for.`);
    },
    close: core.close,
  };
}

/** The platforms of the folder. */
async function callersOf(core: Core): Promise<readonly number[]> {
  const page = { from: undefined, size: platforms };
  const [reply] = await core.executeBatch([{ effect: { kind: 'ListKeys', page } }]);
  const { items } = resultOf(reply) as { readonly items: readonly { readonly callerId: number }[] };
  return items.map(({ callerId }) => callerId);
}

/** What a unit came to. Throws where that is an error or a failure. */
function resultOf(reply: Reply | undefined): unknown {
  if (reply === undefined || 'failure' in reply) throw new Error('The store cannot work.');
  if (reply.outcome.kind !== 'DONE') throw new Error(`The store answers ${JSON.stringify(reply.outcome)}.`);
  return reply.outcome.result;
}
