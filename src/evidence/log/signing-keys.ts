import { createPrivateKey, createPublicKey, randomBytes, sign } from 'node:crypto';
import type { KeyRing } from '../../keys/key-ring.ts';
import type { LogKey, NewLogKey } from '../../store/log-commands.ts';
import { checkpointText, signatureLine, signatureTypes, verifierKeyOf } from '../formats/checkpoint.ts';
import type { PublishedCheckpoint } from './publication.ts';

type SigningKey = ReturnType<typeof signingKey>;

/** The DER of an Ed25519 private key in PKCS #8, up to its seed (RFC 8410). */
const pkcs8BeforeSeed = Buffer.from('302e020100300506032b657004220420', 'hex');

/** Makes the key of a name and a seed of 32 bytes. */
export function signingKey(name: string, seed: Uint8Array) {
  const der = Buffer.concat([pkcs8BeforeSeed, seed]);
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  const { x = '' } = createPublicKey(privateKey).export({ format: 'jwk' });
  const key = verifierKeyOf(name, signatureTypes.ed25519, Buffer.from(x, 'base64url'));
  /** Returns the signature line over the text of a note, with its newline. */
  const signText = (text: string) => signatureLine(key, sign(null, Buffer.from(text), privateKey));
  return { vkey: key.vkey, sign: signText };
}

/** Signs a tree head with each key. */
export function signCheckpoint(
  tree: Omit<PublishedCheckpoint, 'note'>,
  keys: readonly SigningKey[],
): PublishedCheckpoint {
  const text = checkpointText(tree);
  return { ...tree, note: `${text}\n${keys.map((key) => key.sign(text)).join('')}` };
}

/** Makes a new key of a log. Its seed is encrypted with the master key and bound to its verifier key. */
export function mintLogKey(name: string, keyRing: KeyRing, addedAtS: number): NewLogKey {
  const seed = randomBytes(32);
  const { vkey } = signingKey(name, seed);
  return { vkey, sealedSeed: keyRing.seal(seed.toString('hex'), vkey), addedAtS };
}

/** Whether a key signs at `nowS`, Unix seconds. */
export function signsAt(key: LogKey, nowS: number): boolean {
  return !hasEnded(key, nowS) && !isAhead(key, nowS);
}

/** Whether a key begins to sign after `nowS`, Unix seconds. */
export function isAhead({ signsFromS }: LogKey, nowS: number): boolean {
  return signsFromS !== null && nowS < signsFromS;
}

/** Whether a key no longer signs at `nowS`, Unix seconds. */
export function hasEnded({ isRetired, endsAtS }: LogKey, nowS: number): boolean {
  return isRetired || (endsAtS !== null && nowS >= endsAtS);
}

/** Returns a function that decrypts keys for signing, each once. It throws SecretNotOpened. */
export function createSigningKeys(keyRing: KeyRing): (keys: readonly LogKey[]) => readonly SigningKey[] {
  const opened = new Map<string, SigningKey>();
  function open({ vkey, sealedSeed }: LogKey): SigningKey {
    const seed = keyRing.open(sealedSeed, vkey).export().toString();
    const key = signingKey(vkey.slice(0, vkey.indexOf('+')), Buffer.from(seed, 'hex'));
    if (key.vkey !== vkey) throw new Error(`The seed of the log key ${vkey} belongs to another key.`);
    opened.set(vkey, key);
    return key;
  }
  return (keys) => keys.map((key) => opened.get(key.vkey) ?? open(key));
}
