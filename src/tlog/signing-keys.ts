import { randomBytes } from 'node:crypto';
import type { KeyRing } from '../keys/key-ring.ts';
import type { LogKey, NewLogKey } from '../store/log-commands.ts';
import { type SigningKey, seedBytes, shortNameOf, signingKey } from './note.ts';

/** Makes a key that signs under a name, its seed sealed. */
export function mintLogKey(name: string, keyRing: KeyRing, addedAtS: number): NewLogKey {
  const seed = randomBytes(seedBytes);
  const { vkey } = signingKey(name, seed);
  return { vkey, sealedSeed: keyRing.seal(seed.toString('hex'), sealedAs({ vkey })), addedAtS };
}

/** What a seed is sealed for, and what messages call the key. */
export function sealedAs({ vkey }: Pick<LogKey, 'vkey'>): string {
  return `log key ${shortNameOf(vkey)}`;
}

/** Opens keys for signing, each once. */
export interface SigningKeys {
  /** Those of the keys that have not ended. Throws SecretNotOpened. */
  open(keys: readonly LogKey[]): readonly SigningKey[];
}

/** `name` of a verifier key is what stands before its first `+`. */
export function createSigningKeys(keyRing: KeyRing): SigningKeys {
  const opened = new Map<string, SigningKey>();
  function openOne({ vkey, sealedSeed }: LogKey): SigningKey {
    const known = opened.get(vkey);
    if (known !== undefined) return known;
    const seed = keyRing.open(sealedSeed, sealedAs({ vkey })).export().toString();
    const key = signingKey(vkey.slice(0, vkey.indexOf('+')), Buffer.from(seed, 'hex'));
    if (key.vkey !== vkey) throw new Error(`The seed of the ${sealedAs({ vkey })} is that of another key.`);
    opened.set(vkey, key);
    return key;
  }
  return { open: (keys) => keys.filter(({ isRetired }) => !isRetired).map(openOne) };
}
