import { createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import { seal, sealKeyBytes, unseal } from './seal.ts';

/** Encrypts secrets at rest with AES-256-GCM. */
export interface KeyRing {
  /** Encrypts a secret for a key id. It can be decrypted only for that id. */
  seal(secret: string, keyId: string): Uint8Array;
  /**
   * Decrypts a secret. Throws SecretNotOpened if it was altered, moved to another id, or encrypted with a key not in the
   * ring.
   */
  open(sealed: Uint8Array, keyId: string): KeyObject;
  /** The master keys. The first one encrypts. */
  readonly masterKeys: readonly [MasterKeyId, ...MasterKeyId[]];
}

/** A ring whose keys can be replaced while it is in use. */
export interface ReplaceableKeyRing extends KeyRing {
  /** Encrypts and decrypts with the keys of this ring from now on. */
  replace(ring: KeyRing): void;
}

/** A master key without its bytes. */
export interface MasterKeyId {
  readonly name: string;
  /** A fingerprint of the key, 16 hex digits. */
  readonly check: string;
}

/** A secret cannot be decrypted. The message, for the operator, names the key and the cause. */
export class SecretNotOpened extends Error {
  override name = 'SecretNotOpened';
}

/** A master key with its name, which is stored with what it encrypts. */
export interface MasterKey {
  /** 1 to 32 of a-z 0-9 - _. */
  readonly name: string;
  /** 32 bytes. */
  readonly key: Uint8Array;
}

const entry = /^(?:([a-z0-9_-]{1,32}):)?([0-9a-f]{64})$/;

/**
 * Reads master keys: one `name:64 lower-case hex digits` a line or separated by commas, `#` begins a comment; a single
 * key may go without a name. The first one encrypts; all of them decrypt. Throws RangeError, naming the line.
 */
export function parseMasterKeys(text: string): MasterKey[] {
  const entries = text.replaceAll(/#.*/g, '').split(/[\n,]/);
  const keys = entries.flatMap((text, index) => {
    const line = text.trim();
    if (line === '') return [];
    const [, name = 'main', hex] = entry.exec(line) ?? [];
    if (hex === undefined) throw new RangeError(`entry ${index + 1} is not name:64 lower-case hex digits`);
    return [{ name, key: Buffer.from(hex, 'hex') }];
  });
  if (keys.length === 0) throw new RangeError('it holds no key');
  if (new Set(keys.map(({ name }) => name)).size < keys.length)
    throw new RangeError('two keys have the same name');
  return keys;
}

/** A new master key, in the form that parseMasterKeys reads. */
export function newMasterKeyText(): string {
  return `main:${randomBytes(sealKeyBytes).toString('hex')}\n`;
}

/** The name of the master key that a secret was encrypted with. */
export function sealingKeyName(sealed: Uint8Array): string {
  const bytes = Buffer.from(sealed);
  return bytes.toString('utf8', 0, bytes.indexOf(0));
}

/** The ring of these keys, of which the first encrypts. An encrypted secret is the name of its key, NUL, and the ciphertext. */
export function createKeyRing(keys: readonly MasterKey[]): KeyRing {
  const [active, ...others] = keys;
  if (active === undefined) throw new RangeError('A key ring needs a key.');
  const ring = new Map(keys.map(({ name, key }) => [name, key]));
  return {
    seal: (secret, keyId) =>
      Buffer.concat([Buffer.from(`${active.name}\0`), seal(active.key, Buffer.from(secret), keyId)]),
    open: (sealed, keyId) => {
      const name = sealingKeyName(sealed);
      const key = ring.get(name);
      if (key === undefined)
        throw new SecretNotOpened(
          `The secret of ${keyId} is encrypted with master key '${name}', which is not in the ring.`,
        );
      try {
        return createSecretKey(unseal(key, sealed.subarray(sealed.indexOf(0) + 1), keyId));
      } catch (cause) {
        const why = `was altered, or encrypted with another master key of the name '${name}'`;
        throw new SecretNotOpened(`The secret of ${keyId} ${why}.`, { cause });
      }
    },
    masterKeys: [idOf(active), ...others.map(idOf)],
  };
}

/** A ring that begins with the keys of another one. */
export function createReplaceableKeyRing(first: KeyRing): ReplaceableKeyRing {
  let current = first;
  return {
    seal: (secret, keyId) => current.seal(secret, keyId),
    open: (sealed, keyId) => current.open(sealed, keyId),
    get masterKeys() {
      return current.masterKeys;
    },
    replace: (ring) => {
      current = ring;
    },
  };
}

function idOf({ name, key }: MasterKey): MasterKeyId {
  const check = createHmac('sha256', key).update('artseal master key').digest('hex').slice(0, 16);
  return { name, check };
}
