import type { Actor } from '../domain/audit-entry.ts';
import { statusAt } from '../domain/caller.ts';
import { urlSealId } from '../domain/webhook.ts';
import type { StoredKey } from '../store/caller-commands.ts';
import type { LogState } from '../store/log-commands.ts';
import { allOf, type Page, type PageQuery } from '../store/paging.ts';
import type { Execute } from '../store/store.ts';
import type { StoredWebhook } from '../store/webhook-commands.ts';
import { type KeyRing, SecretNotOpened, sealingKeyName } from './key-ring.ts';

/** The master keys are not those that the secrets in the store were sealed under. */
export class MasterKeyError extends Error {
  override name = 'MasterKeyError';
}

/** What of a key its sealed secret is judged by. */
export type SealedKey = Pick<StoredKey, 'keyId' | 'caller' | 'sealedSecret' | 'status' | 'expiresAtS'>;

/**
 * Every key of a store with a secret: those of platforms, those that webhooks are signed with by the ids of these, the URLs of
 * webhooks by `urlSealId`, and those of the evidence log by their verifier keys.
 */
export async function* sealedKeys(execute: Execute): AsyncIterable<SealedKey> {
  for (const list of listsOf(execute)) yield* allOf(list);
  yield* sealedLogKeys(await execute({ kind: 'GetLog' }));
}

/** Those that are listed in pages. */
const listsOf = (execute: Execute): readonly ((page: PageQuery) => Promise<Page<SealedKey>>)[] => [
  (page) => execute({ kind: 'ListKeys', page }),
  async (page) => {
    const { items, next } = await execute({ kind: 'ListWebhooks', owner: undefined, page });
    return { items: items.flatMap((one) => [...sealedWebhookSecrets(one), ...sealedWebhookUrl(one)]), next };
  },
];

/** The secret that a webhook is signed with, and the one before. */
export function sealedWebhookSecrets(webhook: StoredWebhook): readonly SealedKey[] {
  const { webhookId: keyId, caller, sealedSecret, previousSecret, previousEndsAtS } = webhook;
  const current = { keyId, caller, sealedSecret, status: 'ACTIVE', expiresAtS: null } as const;
  return previousSecret === null
    ? [current]
    : [current, { ...current, sealedSecret: previousSecret, expiresAtS: previousEndsAtS }];
}

/** The URL of a webhook; none as long as it is not sealed. */
export function sealedWebhookUrl({ webhookId, caller, sealedUrl }: StoredWebhook): readonly SealedKey[] {
  return [
    { keyId: urlSealId(webhookId), caller, sealedSecret: sealedUrl, status: 'ACTIVE', expiresAtS: null },
  ];
}

/** Those of the evidence log that have not ended: the seed of one that has is erased. */
export function sealedLogKeys({ keys }: Pick<LogState, 'keys'>): readonly SealedKey[] {
  return keys
    .filter(({ isRetired }) => !isRetired)
    .map(({ vkey, sealedSeed }) => ({
      ...{ keyId: vkey, caller: 'evidence log', sealedSecret: sealedSeed },
      ...{ status: 'ACTIVE', expiresAtS: null },
    }));
}

/** Secrets that are sealed under master keys of one name. */
export interface Seals {
  readonly masterKey: string;
  readonly secrets: number;
  /** Those of them whose keys are still good: without the master key, nothing can be signed or verified with these. */
  readonly needed: number;
}

/** How many keys or webhooks, whose seals are changed in one unit, which other units wait for. */
const sealsPerUnit = 200;

/**
 * Opens the secret of every key that is still good at `nowS`, Unix seconds. Throws MasterKeyError for the first
 * that does not open.
 */
export async function checkSealedSecrets(execute: Execute, keyRing: KeyRing, nowS: number): Promise<void> {
  for await (const key of sealedKeys(execute)) {
    if (findUnopened([key], keyRing, nowS).length === 0) continue;
    throw new MasterKeyError(
      `the master key does not open the secret of ${key.keyId} (${key.caller}): ` +
        `set ARTSEAL_MASTER_KEY_FILE to the file with the key ${sealingKeyName(key.sealedSecret)} of this database.`,
    );
  }
}

/** Those of the keys whose secrets do not open although they are still good at `nowS`, Unix seconds. */
export function findUnopened(
  keys: readonly SealedKey[],
  keyRing: KeyRing,
  nowS: number,
): readonly SealedKey[] {
  return keys.filter((key) => statusAt(key, nowS) !== 'REVOKED' && secretOf(key, keyRing) === undefined);
}

/** The secret of a key; undefined if its seal does not open. */
function secretOf({ sealedSecret, keyId }: SealedKey, keyRing: KeyRing): string | undefined {
  try {
    return keyRing.open(sealedSecret, keyId).export().toString();
  } catch (error) {
    if (error instanceof SecretNotOpened) return undefined;
    throw error;
  }
}

/** How many secrets are sealed under which master key, as of `nowS`, Unix seconds; in the order of their names. */
export function countSeals(keys: readonly SealedKey[], nowS: number): readonly Seals[] {
  const byName = Map.groupBy(keys, ({ sealedSecret }) => sealingKeyName(sealedSecret));
  return [...byName]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([masterKey, sealed]) => {
      const needed = sealed.filter((key) => statusAt(key, nowS) !== 'REVOKED').length;
      return { masterKey, secrets: sealed.length, needed };
    });
}

/**
 * Seals every secret anew that is not sealed under the first master key of the ring, some at a time; `beforeUnit` may refuse
 * to go on. What was done stays done, so that another run goes on from there. A secret that does not open stays as it is,
 * which those of revoked keys alone may. Gives how many were sealed anew.
 */
export async function resealSecrets(
  execute: Execute,
  keyRing: KeyRing,
  by: Actor,
  beforeUnit: () => void,
): Promise<number> {
  const [{ name: masterKey }] = keyRing.masterKeys;
  let resealed = 0;
  async function reseal(keys: readonly SealedKey[]): Promise<void> {
    const seals = keys.flatMap((key) => sealedAnew(key, keyRing));
    if (seals.length > 0) resealed += await execute({ kind: 'ReplaceSeals', by, masterKey, seals });
  }
  for (const list of listsOf(execute)) {
    let from: number | undefined;
    do {
      beforeUnit();
      const page = await list({ from, size: sealsPerUnit });
      await reseal(page.items);
      from = page.next;
    } while (from !== undefined);
  }
  beforeUnit();
  await reseal(sealedLogKeys(await execute({ kind: 'GetLog' })));
  return resealed;
}

function sealedAnew(key: SealedKey, keyRing: KeyRing) {
  const { keyId, sealedSecret: from } = key;
  const [{ name }] = keyRing.masterKeys;
  const secret = sealingKeyName(from) === name ? undefined : secretOf(key, keyRing);
  return secret === undefined ? [] : [{ keyId, from, to: keyRing.seal(secret, keyId) }];
}
