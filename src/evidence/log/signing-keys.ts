import { randomBytes } from 'node:crypto';
import type { KeyRing } from '../../keys/key-ring.ts';
import type { LogKey, NewLogKey } from '../../store/log-commands.ts';
import { type SigningKey, seedBytes, signingKey } from './note.ts';

/** Makes a key that signs under a name. Its seed is sealed for its verifier key. */
export function mintLogKey(name: string, keyRing: KeyRing, addedAtS: number): NewLogKey {
  const seed = randomBytes(seedBytes);
  const { vkey } = signingKey(name, seed);
  return { vkey, sealedSeed: keyRing.seal(seed.toString('hex'), vkey), addedAtS };
}

/** Whether a key signs at `nowS`, Unix seconds. */
export function signsAt(key: LogKey, nowS: number): boolean {
  return !hasEnded(key, nowS) && !isAhead(key, nowS);
}

/** Whether a key is to sign later than `nowS`, Unix seconds. */
export function isAhead({ signsFromS }: LogKey, nowS: number): boolean {
  return signsFromS !== null && nowS < signsFromS;
}

/** Whether a key signs no more at `nowS`, Unix seconds. */
export function hasEnded({ isRetired, endsAtS }: LogKey, nowS: number): boolean {
  return isRetired || (endsAtS !== null && nowS >= endsAtS);
}

/** Opens keys for signing, each once. Throws SecretNotOpened. */
export type OpenSigningKeys = (keys: readonly LogKey[]) => readonly SigningKey[];

/** Opens them with a key ring. */
export function createSigningKeys(keyRing: KeyRing): OpenSigningKeys {
  const opened = new Map<string, SigningKey>();
  function openOne({ vkey, sealedSeed }: LogKey): SigningKey {
    const known = opened.get(vkey);
    if (known !== undefined) return known;
    const seed = keyRing.open(sealedSeed, vkey).export().toString();
    const name = vkey.slice(0, vkey.indexOf('+'));
    const key = signingKey(name, Buffer.from(seed, 'hex'));
    if (key.vkey !== vkey) throw new Error(`The seed of the log key ${vkey} is that of another key.`);
    opened.set(vkey, key);
    return key;
  }
  return (keys) => keys.map(openOne);
}
