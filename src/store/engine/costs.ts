import type { Command, Kind, StoreRequest } from '../store.ts';
import { deletedPerRequest, redeliveredPerRequest } from '../webhook-commands.ts';

/** The cost of a command. A filing costs 1, about 20 µs. */
type Costs = { readonly [K in Kind]?: (command: Command<K>) => number };

/** The commands that cost more than a filing, without those whose page has the usual cost. */
const costs: Costs = {
  ListFilings: ({ page }) => 1 + page.size / 2,
  Redeliver: ({ which }) => ('sequence' in which ? 1 : redeliveredPerRequest),
  DeleteWebhook: () => deletedPerRequest / 5,
  ReadEvents: () => 15,
  ReadAllEvents: () => 15,
  ReadLeaves: () => 15,
  ReadSubtrees: () => 10,
  ProveInclusion: () => 15,
  ProveConsistency: () => 15,
  FindRecord: () => 15,
  VerifyLog: ({ leaves }) => leaves / 8,
  ReadMetrics: () => 60,
  ClaimDeliveries: ({ limit }) => limit,
  RecordAttempts: ({ outcomes }) => outcomes.length,
};

/** An estimate of what a request costs the thread of the store, at least 1. */
export function costOf({ effect }: StoreRequest): number {
  if (effect === undefined) return 1;
  const cost = costs[effect.kind] as ((command: Command) => number) | undefined;
  if (cost !== undefined) return Math.max(1, cost(effect));
  return 'page' in effect ? 1 + effect.page.size / 4 : 1;
}

/** The number of characters and bytes in a value, as a measure of its size. */
export function charactersIn(value: unknown): number {
  if (typeof value === 'string' || value instanceof Uint8Array) return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  let sum = 0;
  for (const part of Object.values(value)) sum += charactersIn(part);
  return sum;
}

/** Characters in the replies of a batch after which it ends, so that the receiving thread can do other work between. */
export const repliedCharactersMax = 500_000;

/** Bounds of the distribution of requests in a transaction. */
export const requestBounds: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_000];
