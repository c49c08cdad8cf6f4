import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import type { Artwork } from '../src/domain/filing.ts';
import { type Core, openCore, type Reply } from '../src/store/sqlite/core.ts';
import type { Command, Unit } from '../src/store/store.ts';

/** A store without its thread and its doors, with filings in it that are all leaves of its log. */
export interface LoggingCore {
  /** How many leaves its tree has. */
  leaves(): number;
  /** Carries out so many transactions with so many signed filings each. */
  file(transactions: number, filings: number): void;
  /** Asks for something that only reads. */
  ask(command: Command): void;
  /** One leaf after the other, all over the tree. */
  someLeaf(nth: number): number;
  /** A full tile of level 0, or what there is of it, all over the tree. */
  someTile(nth: number): { readonly place: number; readonly width: number };
  close(): void;
}

const artwork: Artwork = {
  author: 'Qi Baishi',
  era: '1947',
  size: '68 x 136 cm',
  material: 'ink and colour on paper',
  condition: 'two restored creases',
  price: 128_000_000n,
};

/** Filings of a transaction while the store is filled. */
const filledAtOnce = 1_000;
/** Numbers that are given out in a year, after which filings are of the next. */
const numbersOfYear = 900_000;
const firstYear = 2026;
/** So far apart that no more nonces are remembered of a large log than of a small one. */
const secondsApart = 30;
const callers = 256;
const tileWidth = 256;
/** A step through the tree that has no divisor in common with sizes that are round. */
const stride = 7_919;

/** Makes a store in a new folder and files until its tree has so many leaves. */
export function openLoggingCore(dataDir: string, leaves: number): LoggingCore {
  mkdirSync(dataDir);
  const core = openCore({ dataDir, environment: 'sandbox', currency: 'CNY', opening: 'NEW' });
  const ids = Array.from({ length: callers }, (_, nth) => addPlatform(core, `bench-${nth}`));
  let filed = 0;

  function unit(): Unit {
    const year = firstYear + Math.floor(filed / numbersOfYear);
    const callerId = ids[filed % callers] ?? 0;
    const atMs = Date.UTC(year, 0, 2) + (filed % numbersOfYear) * secondsApart * 1_000;
    const time = new Date(atMs).toISOString();
    filed += 1;
    return {
      admission: {
        nowS: atMs / 1_000,
        nonce: { keyId: callerId, nonce: randomUUID() },
        quota: { callerId, month: time.slice(0, 7), limit: undefined, take: true },
      },
      effect: {
        kind: 'FileArtwork',
        artwork,
        at: { atMs, timestamp: `${time.slice(0, 19)}+00:00` },
        by: { callerId, caller: `bench-${callerId}` },
      },
    };
  }
  function file(transactions: number, filings: number): void {
    for (let left = transactions; left > 0; left -= 1) {
      core.executeBatch(Array.from({ length: filings }, unit)).forEach(mustBeDone);
    }
  }
  // That the log was begun is a leaf, too.
  const size = () => (filed === 0 ? 0 : filed + 1);
  while (size() < leaves) file(1, Math.min(filledAtOnce, leaves - Math.max(size(), 1)));

  return {
    leaves: size,
    file,
    ask: (command) => {
      const [reply] = core.executeBatch([{ effect: command }]);
      if (mustBeDone(reply) === undefined)
        throw new Error(`The log does not have what ${command.kind} asks for.`);
    },
    someLeaf: (nth) => (nth * stride) % size(),
    someTile: (nth) => {
      const width = Math.min(tileWidth, size());
      return { place: ((nth * stride) % Math.floor(size() / width)) * width, width };
    },
    close: core.close,
  };
}

function addPlatform(core: Core, name: string): number {
  const by = { actor: 'bench', atS: 0, reason: undefined };
  const key = { keyId: name, apiKey: name, sealedSecret: Buffer.alloc(32), createdAtS: 0 };
  const platform = { name, tier: 'ENTERPRISE', monthlyQuota: undefined } as const;
  const added = mustBeDone(core.executeBatch([{ effect: { kind: 'AddPlatform', by, platform, key } }])[0]);
  return (added as { readonly callerId: number }).callerId;
}

/** What a unit came to. */
function mustBeDone(reply: Reply | undefined): unknown {
  if (reply === undefined || 'failure' in reply) throw new Error('The store cannot work.');
  if (reply.outcome.kind !== 'DONE') throw new Error(`The store answers ${JSON.stringify(reply.outcome)}.`);
  return reply.outcome.result;
}
