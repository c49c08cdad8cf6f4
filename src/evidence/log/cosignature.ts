import { type KeyObject, verify } from 'node:crypto';
import { ed25519PublicKey, fromBase64, isKeyName, keyIdBytes, keyIdOf, publicKeyBytes } from './note.ts';

/** A witness by its verifier key: an Ed25519 key for cosignatures (C2SP tlog-cosignature, type 0x04). */
export interface WitnessKey {
  /** As its signature lines have it. */
  readonly name: string;
  /** The key id, 8 lower-case hex digits. */
  readonly id: string;
  readonly publicKey: KeyObject;
}

/** What a witness said of a checkpoint, verified. */
export interface Cosignature {
  /** The line of a signed note, without the newline. */
  readonly line: string;
  /** When the witness says that this was the newest it had seen, Unix seconds. */
  readonly timeS: number;
}

/** The type of a verifier key for cosignatures with Ed25519. */
const cosignatureType = 0x04;

/** Bytes of the time that a cosignature begins with, and of the signature behind it. */
const timestampBytes = 8;
const signatureBytes = 64;

/** Reads a verifier key of a witness, `<name>+<id>+<base64>`. Throws an Error that says what is wrong with it. */
export function parseWitnessKey(text: string): WitnessKey {
  const [, name = '', id = '', base64 = ''] = /^([^+]+)\+([0-9a-f]{8})\+(.+)$/.exec(text) ?? [];
  const typed = fromBase64(base64);
  if (!isKeyName(name) || typed === undefined)
    throw new Error('is no verifier key of the form name+id+base64');
  if (typed[0] !== cosignatureType || typed.length !== 1 + publicKeyBytes)
    throw new Error(
      'is no Ed25519 key for cosignatures (type 4, 32 bytes), which are the ones that are taken',
    );
  const computed = keyIdOf(name, typed).toString('hex');
  if (computed !== id) throw new Error(`has the id ${id}, but its name and key have ${computed}`);
  return { name, id, publicKey: ed25519PublicKey(typed.subarray(1)) };
}

/**
 * The cosignature of a witness among the signature lines that it answered with: those of other keys are passed over, as the
 * specification says. Undefined if there is none of it. Throws an Error if what bears its name and id is none of this text.
 */
export function findCosignature(answer: string, witness: WitnessKey, text: string): Cosignature | undefined {
  for (const line of answer.split('\n')) {
    const [, name, encoded = ''] = /^\u2014 (\S+) ([0-9A-Za-z+/]+=*)$/u.exec(line) ?? [];
    const bytes = Buffer.from(encoded, 'base64');
    if (name !== witness.name || bytes.toString('hex', 0, keyIdBytes) !== witness.id) continue;
    return { line, timeS: verifiedTime(bytes.subarray(keyIdBytes), witness, text) };
  }
  return undefined;
}

/** The time of a cosignature of this witness over the text of a checkpoint, Unix seconds. Throws an Error if it is none. */
function verifiedTime(signature: Buffer, { publicKey }: WitnessKey, text: string): number {
  if (signature.length !== timestampBytes + signatureBytes)
    throw new Error(`a cosignature has ${timestampBytes + signatureBytes} bytes, not ${signature.length}`);
  const timeS = signature.readBigUInt64BE();
  const message = Buffer.from(`cosignature/v1\ntime ${timeS}\n${text}`);
  if (!verify(null, message, publicKey, signature.subarray(timestampBytes)))
    throw new Error('its cosignature is not one of this checkpoint by its key');
  return Number(timeS);
}
