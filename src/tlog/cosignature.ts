import { createPublicKey, hash, type KeyObject, verify } from 'node:crypto';

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

/** The type of a verifier key for cosignatures with Ed25519, and bytes of such a key, of a signature and of what is before it. */
const cosignatureType = 0x04;
const publicKeyBytes = 32;
const signatureBytes = 64;
const [idBytes, timestampBytes] = [4, 8];

/** What Node wants before the bytes of an Ed25519 key: SubjectPublicKeyInfo in DER. */
const spkiPrefix = Buffer.from('302a300506032b6570032100', 'hex');

/** Reads a verifier key of a witness, `<name>+<id>+<base64>`. Throws an Error that says what is wrong with it. */
export function parseWitnessKey(text: string): WitnessKey {
  const [, name = '', id = '', material = ''] =
    /^([^\s+\p{Cc}]+)\+([0-9a-f]{8})\+([0-9A-Za-z+/]+=*)$/u.exec(text) ?? [];
  const bytes = Buffer.from(material, 'base64');
  if (name === '' || bytes.toString('base64') !== material)
    throw new Error('is no verifier key of the form name+id+base64');
  if (bytes[0] !== cosignatureType || bytes.length !== 1 + publicKeyBytes)
    throw new Error(
      'is no Ed25519 key for cosignatures (type 4, 32 bytes), which are the ones that are taken',
    );
  const computed = hash('sha256', Buffer.concat([Buffer.from(`${name}\n`), bytes])).slice(0, 2 * idBytes);
  if (computed !== id) throw new Error(`has the id ${id}, but its name and key have ${computed}`);
  const key = Buffer.concat([spkiPrefix, bytes.subarray(1)]);
  return { name, id, publicKey: createPublicKey({ key, format: 'der', type: 'spki' }) };
}

/**
 * The cosignature of a witness among the signature lines that it answered with: those of other keys are passed over, as the
 * specification says. Undefined if there is none of it. Throws an Error if what bears its name and id is none of this text.
 */
export function findCosignature(answer: string, witness: WitnessKey, text: string): Cosignature | undefined {
  for (const line of answer.split('\n')) {
    const [, name, encoded = ''] = /^\u2014 (\S+) ([0-9A-Za-z+/]+=*)$/u.exec(line) ?? [];
    const bytes = Buffer.from(encoded, 'base64');
    if (name !== witness.name || bytes.toString('hex', 0, idBytes) !== witness.id) continue;
    return { line, timeS: verifiedTime(bytes.subarray(idBytes), witness, text) };
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
