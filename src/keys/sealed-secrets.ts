import type { Actor } from '../domain/audit-entry.ts';
import { statusAt } from '../domain/caller.ts';
import { urlSealId } from '../domain/webhook.ts';
import type { StoredKey } from '../store/caller-commands.ts';
import type { LogState } from '../store/log-commands.ts';
import { allOf, type Page, type PageQuery } from '../store/paging.ts';
import type { Execute } from '../store/store.ts';
import type { StoredWebhook } from '../store/webhook-commands.ts';
import { type KeyRing, SecretNotOpened, sealingKeyName } from './key-ring.ts';

/** The stored secrets are encrypted with other master keys. */
export class MasterKeyError extends Error {
  override name = 'MasterKeyError';
}

/** An encrypted secret and the status of its key. */
export type SealedKey = Pick<StoredKey, 'keyId' | 'caller' | 'sealedSecret' | 'status' | 'expiresAtS'>;

/**
 * Yields all encrypted secrets of a store: those of API keys, the signing secrets of webhooks by webhook id, the URLs of webhooks by
 * `urlSealId`, and the keys of the evidence log by verifier key.
 */
export async function* sealedKeys(execute: Execute): AsyncIterable<SealedKey> {
  for (const list of listsOf(execute)) yield* allOf(list);
  yield* sealedLogKeys(await execute({ kind: 'GetLog' }));
}

/** The lists of encrypted secrets that have pages. */
const listsOf = (execute: Execute): readonly ((page: PageQuery) => Promise<Page<SealedKey>>)[] => [
  (page) => execute({ kind: 'ListKeys', page }),
  async (page) => {
    const { items, next } = await execute({ kind: 'ListWebhooks', owner: undefined, page });
    return { items: items.flatMap((one) => [...sealedWebhookSecrets(one), ...sealedWebhookUrl(one)]), next };
  },
];

/** The current and the previous signing secret of a webhook. */
export function sealedWebhookSecrets(webhook: StoredWebhook): readonly SealedKey[] {
  const { webhookId: keyId, caller, sealedSecret, previousSecret, previousEndsAtS } = webhook;
  const current = { keyId, caller, sealedSecret, status: 'ACTIVE', expiresAtS: null } as const;
  return previousSecret === null
    ? [current]
    : [current, { ...current, sealedSecret: previousSecret, expiresAtS: previousEndsAtS }];
}

/** The URL of a webhook, if it is encrypted. */
export function sealedWebhookUrl({ webhookId, caller, sealedUrl }: StoredWebhook): readonly SealedKey[] {
  return [
    { keyId: urlSealId(webhookId), caller, sealedSecret: sealedUrl, status: 'ACTIVE', expiresAtS: null },
  ];
}

/** The keys of the evidence log. The seed of a retired key is erased. */
export function sealedLogKeys({ keys }: Pick<LogState, 'keys'>): readonly SealedKey[] {
  return keys
    .filter(({ isRetired }) => !isRetired)
    .map(({ vkey, sealedSeed }) => ({
      ...{ keyId: vkey, caller: 'evidence log', sealedSecret: sealedSeed },
      ...{ status: 'ACTIVE', expiresAtS: null },
    }));
}

/** The secrets that are encrypted with a master key. */
export interface Seals {
  readonly masterKey: string;
  readonly secrets: number;
  /** Those whose keys are valid, so that the master key is needed. */
  readonly needed: number;
}

/** Keys or webhooks that are re-encrypted in one request. Other requests wait for it. */
const sealsPerRequest = 200;

/** Opens the secret of every key that is valid at `nowS`, Unix seconds. Throws MasterKeyError for the first that does not open. */
export async function checkSealedSecrets(execute: Execute, keyRing: KeyRing, nowS: number): Promise<void> {
  for await (const key of sealedKeys(execute)) {
    if (findUnopened([key], keyRing, nowS).length === 0) continue;
    throw new MasterKeyError(
      `the master key does not decrypt the secret of ${key.keyId} (${key.caller}): ` +
        `set ARTSEAL_MASTER_KEY_FILE to the file with the key ${sealingKeyName(key.sealedSecret)} of this database.`,
    );
  }
}

/** Returns the keys that are valid at `nowS`, Unix seconds, but whose secrets do not open. */
export function findUnopened(
  keys: readonly SealedKey[],
  keyRing: KeyRing,
  nowS: number,
): readonly SealedKey[] {
  return keys.filter((key) => statusAt(key, nowS) !== 'REVOKED' && secretOf(key, keyRing) === undefined);
}

/** The secret of a key; undefined if it cannot be decrypted. */
function secretOf({ sealedSecret, keyId }: SealedKey, keyRing: KeyRing): string | undefined {
  try {
    return keyRing.open(sealedSecret, keyId).export().toString();
  } catch (error) {
    if (error instanceof SecretNotOpened) return undefined;
    throw error;
  }
}

/** Counts the secrets per master key as of `nowS`, Unix seconds; sorted by name. */
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
 * Re-encrypts all secrets that are not encrypted with the ring's first master key, in several requests, and returns their number.
 * If a request fails, the next run continues. Secrets that do not open stay as they are; only those of revoked keys may.
 */
export async function reencryptSecrets(execute: Execute, keyRing: KeyRing, by: Actor): Promise<number> {
  const [{ name: masterKey }] = keyRing.masterKeys;
  let reencrypted = 0;
  async function reencrypt(keys: readonly SealedKey[]): Promise<void> {
    const seals = keys.flatMap((key) => newSeals(key, keyRing));
    if (seals.length > 0) reencrypted += await execute({ kind: 'ReplaceSeals', by, masterKey, seals });
  }
  for (const list of listsOf(execute)) {
    let from: number | undefined;
    do {
      const page = await list({ from, size: sealsPerRequest });
      await reencrypt(page.items);
      from = page.next;
    } while (from !== undefined);
  }
  await reencrypt(sealedLogKeys(await execute({ kind: 'GetLog' })));
  return reencrypted;
}

function newSeals(key: SealedKey, keyRing: KeyRing) {
  const { keyId, sealedSecret: from } = key;
  const [{ name }] = keyRing.masterKeys;
  const secret = sealingKeyName(from) === name ? undefined : secretOf(key, keyRing);
  return secret === undefined ? [] : [{ keyId, from, to: keyRing.seal(secret, keyId) }];
}
