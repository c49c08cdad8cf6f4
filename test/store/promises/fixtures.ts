import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type Reason, Refusal } from '../../../src/domain/reason.ts';
import type {
  BusinessTime,
  CallerRef,
  NewKey,
  NewToken,
  Page,
  PageQuery,
  Store,
  StoredKey,
  StoreOptions,
} from '../../../src/store/store.ts';
import { artwork, escrowTerms } from '../../support/samples.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

/** An engine of the store, as the suite sees it. */
export interface StoreEngine {
  /** Opens the store that a folder holds, making it if need be. */
  open(options: StoreOptions): Promise<Store>;
}

type Cleanup = Pick<TestContext, 'after'>;

/** Opens a store on a folder of its own or on a given one; closed after the test. */
export async function openStore(
  test: Cleanup,
  engine: StoreEngine,
  dataDir: string = temporaryFolder(test),
): Promise<Store> {
  const store = await engine.open({ dataDir, environment: 'sandbox' });
  test.after(() => store.close());
  return store;
}

/** What a crash at this moment would leave: a copy of the folder, as it is on disk. */
export function crashCopy(test: Cleanup, dataDir: string): string {
  const copy = join(temporaryFolder(test), 'copy');
  cpSync(dataDir, copy, { recursive: true });
  return copy;
}

/** An instant by its business timestamp. */
export function time(timestamp: string): BusinessTime {
  return { atMs: Date.parse(timestamp), timestamp };
}

/** An instant like any other. */
export const noon = time('2026-11-21T12:00:00+00:00');

/** An artwork as the store takes it. */
export const painting = { ...artwork, price: BigInt(artwork.price) };

/** Terms as the store takes them. */
export function terms(filingNo: string) {
  const { amount, ...rest } = escrowTerms(filingNo);
  return { ...rest, type: 'GUARANTEE', amount: BigInt(amount) } as const;
}

/** A key as minted. */
export function newKey(over: Partial<NewKey> = {}): NewKey {
  const word = randomBytes(8).toString('hex');
  const sealedSecret = randomBytes(60);
  return { keyId: `key_${word}`, apiKey: `ak_${word}`, sealedSecret, createdAtS: 1_790_000_000, ...over };
}

/** A token as minted. */
export function newToken(over: Partial<NewToken> = {}): NewToken {
  const sha256 = randomBytes(32);
  const tokenId = `tok_${randomBytes(8).toString('hex')}`;
  return { tokenId, sha256, operator: false, createdAtS: 1_790_000_000, ...over };
}

/** Registers a platform without a quota. */
export function addPlatform(store: Store, name: string): Promise<StoredKey> {
  return store.callers.addPlatform({ name, tier: 'ENTERPRISE', monthlyQuota: undefined }, newKey());
}

/** Files an artwork and makes it durable; its number. */
export async function fileOne(store: Store, by: CallerRef, at: BusinessTime = noon): Promise<string> {
  const { filingNo } = await store.filings.file(painting, at, by);
  await store.durable();
  return filingNo;
}

/** All items of a list, page by page. */
export async function allPages<T>(
  list: (page: PageQuery) => Promise<Page<T>>,
  size: number,
): Promise<readonly (readonly T[])[]> {
  const pages: (readonly T[])[] = [];
  let from: number | undefined;
  do {
    const page = await list({ from, size });
    pages.push(page.items);
    from = page.next;
  } while (from !== undefined);
  return pages;
}

/** Asserts that a promise is refused with a reason. */
export async function refused(promise: Promise<unknown>, reason: Reason): Promise<void> {
  await assert.rejects(promise, (error) => {
    assert.ok(error instanceof Refusal, `not a refusal: ${error}`);
    assert.equal(error.reason, reason, error.message);
    return true;
  });
}

/** How many of these promises were fulfilled; the others must have been refused with the reason. */
export async function fulfilledOf(promises: readonly Promise<unknown>[], otherwise: Reason): Promise<number> {
  const settled = await Promise.allSettled(promises);
  const rejected = settled.filter((result) => result.status === 'rejected');
  for (const { reason } of rejected) await refused(Promise.reject(reason), otherwise);
  return settled.length - rejected.length;
}
