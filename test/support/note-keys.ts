import { createPrivateKey, createPublicKey, hash, type KeyObject, randomBytes, sign } from 'node:crypto';

/**
 * Keys of logs and witnesses, written from c2sp.org/signed-note and tlog-cosignature without the sources. A test compares their
 * output with that of golang.org/x/mod/sumdb/note.
 */
export interface NoteKey {
  readonly name: string;
  readonly vkey: string;
  /** The signature line over the text of a note, with its newline. */
  line(text: string): string;
  /** The signed note of a text. */
  sign(text: string): string;
  /** The cosignature line of a witness over the text of a checkpoint; `signedTimeS` is the time in the signed message. */
  cosign(text: string, timeS: number, signedTimeS?: number): string;
}

const rawOf = (publicKey: KeyObject): Buffer =>
  publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);

const keyIdOf = (name: string, material: Buffer): Buffer =>
  hash('sha256', Buffer.concat([Buffer.from(`${name}\n`), material]), 'buffer').subarray(0, 4);

/** The verifier key of an Ed25519 key: of a log with type 1, of a witness with type 4. */
export function vkeyOf(name: string, type: number, publicKey: KeyObject): string {
  const material = Buffer.concat([Buffer.of(type), rawOf(publicKey)]);
  return `${name}+${keyIdOf(name, material).toString('hex')}+${material.toString('base64')}`;
}

/** The key of a seed of 32 bytes, by default a random one. */
export function noteKey(name: string, seed: Uint8Array = randomBytes(32), type = 1): NoteKey {
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed]);
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  const publicKey = createPublicKey(privateKey);
  const id = keyIdOf(name, Buffer.concat([Buffer.of(type), rawOf(publicKey)]));
  const line = (text: string, before = Buffer.alloc(0)) => {
    const signature = sign(null, Buffer.from(text), privateKey);
    return `\u2014 ${name} ${Buffer.concat([id, before, signature]).toString('base64')}\n`;
  };
  return {
    name,
    vkey: vkeyOf(name, type, publicKey),
    line: (text) => line(text),
    sign: (text) => `${text}\n${line(text)}`,
    cosign: (text, timeS, signedTimeS = timeS) => {
      const time = Buffer.alloc(8);
      time.writeBigUInt64BE(BigInt(timeS));
      return line(`cosignature/v1\ntime ${signedTimeS}\n${text}`, time);
    },
  };
}

/** The key of a witness. */
export const witnessKey = (name: string, seed?: Uint8Array): NoteKey => noteKey(name, seed, 4);

/** The text of the checkpoint at the end of a note or a tlog-proof. */
export const checkpointTextOf = (note: string): string => `${note.split('\n\n').at(-2)}\n`;
