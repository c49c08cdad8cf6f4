import type { Actor } from '../domain/audit-entry.ts';
import { statusAt } from '../domain/caller.ts';
import { urlSealId } from '../domain/webhook.ts';
import type { NewSeal, StoredKey } from '../store/caller-commands.ts';
import type { LogState } from '../store/log-commands.ts';
import { allOf } from '../store/paging.ts';
import type { Execute } from '../store/store.ts';
import type { SealedUrl, StoredWebhook } from '../store/webhook-commands.ts';
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
  yield* allOf((page) => execute({ kind: 'ListKeys', page }));
  for await (const one of allOf((page) => execute({ kind: 'ListWebhooks', owner: undefined, page })))
    yield* sealedOfWebhook(one);
  yield* sealedLogKeys(await execute({ kind: 'GetLog' }));
}

/** All that is encrypted of a webhook. */
export const sealedOfWebhook = (webhook: StoredWebhook): readonly SealedKey[] => [
  ...sealedWebhookSecrets(webhook),
  ...sealedWebhookUrl(webhook),
];

/** The current and the previous signing secret of a webhook. */
export function sealedWebhookSecrets(webhook: StoredWebhook): readonly SealedKey[] {
  const { webhookId: keyId, caller, sealedSecret, previousSecret, previousEndsAtS } = webhook;
  const current = { keyId, caller, sealedSecret, status: 'ACTIVE', expiresAtS: null } as const;
  return previousSecret === null
    ? [current]
    : [current, { ...current, sealedSecret: previousSecret, expiresAtS: previousEndsAtS }];
}

/** The encrypted URL of a webhook. */
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

/** Secrets that are re-encrypted in one request. Other requests wait for it. */
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
  let seals: NewSeal[] = [];
  for await (const key of sealedKeys(execute)) {
    const { keyId, sealedSecret: from } = key;
    const secret = sealingKeyName(from) === masterKey ? undefined : secretOf(key, keyRing);
    if (secret === undefined) continue;
    seals.push({ keyId, from, to: keyRing.seal(secret, keyId) });
    if (seals.length < sealsPerRequest) continue;
    reencrypted += await execute({ kind: 'ReplaceSeals', by, masterKey, seals });
    seals = [];
  }
  if (seals.length > 0) reencrypted += await execute({ kind: 'ReplaceSeals', by, masterKey, seals });
  return reencrypted;
}

/** Encrypts the URL of an endpoint. */
export function sealUrl(keyRing: Pick<KeyRing, 'seal'>, webhookId: string, url: string): SealedUrl {
  return { origin: new URL(url).origin, sealedUrl: keyRing.seal(url, urlSealId(webhookId)) };
}

/** The URL of an endpoint. Throws SecretNotOpened. */
export function openUrl(
  keyRing: Pick<KeyRing, 'open'>,
  { webhookId, sealedUrl }: Pick<StoredWebhook, 'webhookId' | 'sealedUrl'>,
): string {
  return keyRing.open(sealedUrl, urlSealId(webhookId)).export().toString();
}
