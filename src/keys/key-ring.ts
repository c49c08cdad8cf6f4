import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import { seal, sealKeyBytes, unseal } from './seal.ts';

/** Seals API secrets at rest with AES-256-GCM. */
export interface KeyRing {
  /** Seals a secret for one key id; it opens for that id alone. */
  seal(secret: string, keyId: string): Uint8Array;
  /** Opens a sealed secret; throws if it was altered, moved to another id, or sealed under a key not in the ring. */
  open(sealed: Uint8Array, keyId: string): KeyObject;
}

/** A master key with the name that its seals bear. */
export interface MasterKey {
  /** 1 to 32 of a-z 0-9 - _. */
  readonly name: string;
  /** 32 bytes. */
  readonly key: Uint8Array;
}

const entry = /^(?:([a-z0-9_-]{1,32}):)?([0-9a-f]{64})$/;

/**
 * Reads master keys: one `name:64 lower-case hex digits` a line or separated by commas, `#` begins a comment; a single
 * key may go without a name. The first one seals; all of them open. Throws RangeError, naming the line.
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

/** The name of the master key that a secret was sealed under. */
export function sealingKeyName(sealed: Uint8Array): string {
  const bytes = Buffer.from(sealed);
  return bytes.toString('utf8', 0, bytes.indexOf(0));
}

/** The ring of these keys, of which the first seals. A sealed secret is the name of its key, NUL, and the seal. */
export function createKeyRing(keys: readonly MasterKey[]): KeyRing {
  const [active] = keys;
  if (active === undefined) throw new RangeError('A key ring needs a key.');
  const ring = new Map(keys.map(({ name, key }) => [name, key]));
  return {
    seal: (secret, keyId) =>
      Buffer.concat([Buffer.from(`${active.name}\0`), seal(active.key, Buffer.from(secret), keyId)]),
    open: (sealed, keyId) => {
      const name = sealingKeyName(sealed);
      const key = ring.get(name);
      if (key === undefined)
        throw new Error(
          `The secret of ${keyId} is sealed under master key '${name}', which is not in the ring.`,
        );
      return createSecretKey(unseal(key, sealed.subarray(sealed.indexOf(0) + 1), keyId));
    },
  };
}
