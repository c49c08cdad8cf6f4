import type { Actor } from '../../src/domain/audit-entry.ts';
import { eventRetentionS } from '../../src/domain/event.ts';
import type { NewKey, StoredKey } from '../../src/store/caller-commands.ts';
import type { Instruction } from '../../src/store/escrow-commands.ts';
import type { BusinessTime, CallerRef } from '../../src/store/filing-commands.ts';
import type { Page, PageQuery } from '../../src/store/paging.ts';
import type { EscrowCase } from '../../src/store/reconciliation-commands.ts';
import type { Command, Kind, NonceClaim, Result, StoreRequest, Taken } from '../../src/store/store.ts';
import type { DueDelivery, StoredWebhook } from '../../src/store/webhook-commands.ts';
import type { Random } from '../support/random.ts';

/** Where the simulated time begins: most of its filings are then old enough to be erased at its end. */
const beginningS = Date.UTC(2012, 5, 1) / 1_000;

/** How far the clock may go back for a while, in seconds: less than a day, after which filings need an operator. */
export const backMaxS = 4_000;

const hexDigits = '0123456789abcdef';

/** Characters that a database could change. */
const characters = [...'aé "\\\'$1?{}%墨🖌\u2028-'];

/** What the requests so far have made, as far as further ones refer to it, and random values of these and others. */
export class World {
  /** The clock, Unix seconds. */
  nowS = beginningS;
  /** A time that the clock does not go back to: what has expired by then may be deleted. */
  sweepAtS = beginningS - backMaxS;
  readonly callers: CallerRef[] = [];
  readonly platforms: string[] = [];
  readonly keys: StoredKey[] = [];
  readonly tokens: string[] = [];
  readonly filings: { readonly filingNo: string; readonly callerId: number }[] = [];
  readonly orders: string[] = [];
  readonly instructions: string[] = [];
  /** The newest known case of each order. */
  readonly cases = new Map<string, EscrowCase>();
  readonly webhooks: StoredWebhook[] = [];
  readonly due: (DueDelivery & { readonly id: number })[] = [];
  readonly links: string[] = [];
  readonly logKeys: string[] = [];
  /** The number of leaves, as last read. */
  leaves = 0;
  /** Lists that have a further page. */
  readonly pages: Command[] = [];
  readonly claimed: StoreRequest[] = [];
  /** Nonces that were used once. */
  readonly nonces: NonceClaim[] = [];
  /** Instants between two long periods: what happened before any of them never happens after it. */
  readonly pauses: number[] = [];
  /** The position of the newest event, as last read. */
  events = 0;

  readonly random: Random;

  constructor(random: Random) {
    this.random = random;
  }

  oneIn(times: number): boolean {
    return this.random.below(times) === 0;
  }

  /** One of the newest of some items, or one of all. */
  known<T>(items: readonly T[]): T | undefined {
    const newest = this.oneIn(4) ? items.length : Math.min(items.length, 12);
    return items[items.length - 1 - this.random.below(newest)];
  }

  /** The same of texts; '' if there is none. */
  named(items: readonly string[]): string {
    return this.known(items) ?? '';
  }

  hex(length: number): string {
    return this.random.text(hexDigits, length);
  }

  id(prefix: string): string {
    return `${prefix}_${this.hex(16)}`;
  }

  bytes(length: number): Buffer {
    return Buffer.from(this.hex(2 * length), 'hex');
  }

  sealed(): Buffer {
    return Buffer.concat([Buffer.from('main\0'), this.bytes(8)]);
  }

  text(most: number): string {
    const length = 1 + this.random.below(most);
    return Array.from({ length }, () => this.random.pick(characters)).join('');
  }

  nowMs(): number {
    return this.nowS * 1_000 + this.random.below(1_000);
  }

  /** Now, `aheadS` later. Timestamps are of a zone whose year begins before that of UTC. */
  time(aheadS = 0): BusinessTime {
    const atMs = this.nowMs() + aheadS * 1_000;
    const local = new Date(atMs + 8 * 3_600_000).toISOString();
    return { atMs, timestamp: `${local.slice(0, 19)}+08:00` };
  }

  year(): number {
    return new Date(this.nowS * 1_000).getUTCFullYear();
  }

  month(): string {
    return new Date(this.nowS * 1_000).toISOString().slice(0, 7);
  }

  by(): Actor {
    return {
      actor: this.random.pick(['user tester (1000)', 'token tok_1 (ops)']),
      atS: this.nowS,
      reason: this.oneIn(2) ? undefined : this.random.pick(['ticket 7', "it's “wrong”"]),
    };
  }

  newKey(): NewKey {
    const [keyId, apiKey] = [this.id('key'), this.id('ak')];
    return { keyId, apiKey, sealedSecret: this.sealed(), createdAtS: this.nowS };
  }

  page(): PageQuery {
    return { from: undefined, size: this.random.pick([1, 2, 3, 10, 100]) };
  }

  /** A caller id, or undefined for any. */
  owner(): number | undefined {
    return this.oneIn(3) ? undefined : this.known(this.callers)?.callerId;
  }

  callerName(): string {
    return this.oneIn(4) ? `new ${this.random.below(9)}` : (this.known(this.callers)?.caller ?? 'nobody');
  }

  /** A number that was issued, or one that may be issued next or never. */
  filingNo(): string {
    const last = this.filings.at(-1)?.filingNo;
    if (!this.oneIn(8) || last === undefined) return this.known(this.filings)?.filingNo ?? '';
    const next = Number(last.slice(8)) + 1 + this.random.below(40);
    return `${last.slice(0, 8)}${String(next).padStart(6, '0')}`;
  }

  artwork() {
    const { random } = this;
    return {
      ...{ author: this.text(20), era: this.text(6), size: this.text(10), material: this.text(20) },
      condition: this.text(60),
      price: random.pick([0n, 1n, 9_007_199_254_740_991n, BigInt(random.below(1_000_000_000))]),
    };
  }

  /** The index of a leaf, or sometimes one after the last. */
  leaf(): number {
    return this.random.below(this.leaves + 3);
  }

  partyId(prefix: string): string {
    return `${prefix}-${this.random.below(4)}`;
  }

  work() {
    const caller = this.known(this.callers);
    return caller && { ...caller, instructionId: this.id('ins') };
  }

  /** An order that needs a review, or any. */
  inReview(): string {
    const stopped = [...this.cases.values()].filter(({ review }) => review !== undefined);
    return this.known(stopped)?.order.escrowId ?? this.named(this.orders);
  }

  /** A pause since which events are kept. */
  pauseMs(): number {
    const kept = this.pauses.filter((atS) => atS > this.nowS - eventRetentionS);
    return (kept.length === 0 ? this.nowS + backMaxS : this.random.pick(kept)) * 1_000;
  }

  /** Remembers what a reply says of the store. */
  learn(effect: Command, result: Result): void {
    const { next } = result === undefined ? {} : (result as Partial<Page<unknown>>);
    if ('page' in effect && next !== undefined)
      this.pages.push({ ...effect, page: { ...effect.page, from: next } } as Command);
    const learnt = learning[effect.kind] as ((result: Result, effect: Command) => void) | undefined;
    learnt?.call(this, result, effect);
  }
}

/** Makes what a command takes; undefined if there is nothing that it could be about. */
export type Makers = { readonly [K in Kind]?: (world: World) => Taken<K> | undefined };

type Learning = {
  readonly [K in Kind]?: (this: World, result: Result<K>, effect: Command<K>) => void;
};

const addNew = <T>(items: T[], item: T) => void (items.includes(item) || items.push(item));

function learnCase(this: World, found: EscrowCase | undefined): void {
  if (found !== undefined) this.cases.set(found.order.escrowId, found);
  for (const { instructionId } of found?.open ?? []) addNew(this.instructions, instructionId);
}

function learnOrder(this: World, { instructionId, order }: Instruction): void {
  addNew(this.instructions, instructionId);
  addNew(this.orders, order.escrowId);
}

function learnWebhook(this: World, webhook: StoredWebhook): void {
  const at = this.webhooks.findIndex(({ id: known }) => known === webhook.id);
  this.webhooks.splice(at < 0 ? this.webhooks.length : at, 1, webhook);
}

const learning: Learning = {
  AddPlatform(key) {
    this.keys.push(key);
    this.callers.push({ callerId: key.callerId, caller: key.caller });
    this.platforms.push(key.caller);
  },
  AddToken({ tokenId, callerId, caller }) {
    this.tokens.push(tokenId);
    if (!this.callers.some((known) => known.callerId === callerId)) this.callers.push({ callerId, caller });
  },
  RotateKey(key) {
    this.keys.push(key);
  },
  FileArtwork({ filingNo }, { by: { callerId } }) {
    this.filings.push({ filingNo, callerId });
  },
  GetTree({ size }) {
    this.leaves = size;
  },
  ShareRecord({ linkId }) {
    this.links.push(linkId);
  },
  RotateLogKey({ vkey }) {
    this.logKeys.push(vkey);
  },
  OpenEscrow: learnOrder,
  PrepareResolution: learnOrder,
  FindCase: learnCase,
  UpdateOrder: learnCase,
  Decide: learnCase,
  CloseOrder: learnCase,
  EndOrder: learnCase,
  AddWebhook: learnWebhook,
  FindWebhook: learnWebhook,
  ClaimDeliveries({ webhook, due }) {
    if (webhook !== undefined) this.due.push(...due.map((each) => ({ ...each, id: webhook.id })));
  },
  ReadMetrics({ newestEvent }) {
    this.events = newestEvent;
  },
};
