import { createPrivateKey, createPublicKey, hash, type KeyObject, sign, verify } from 'node:crypto';

/** Signed notes with Ed25519 keys, as C2SP signed-note has them: a text, a blank line, and a line for each signature. */

/** The type of Ed25519 keys of notes. */
const ed25519 = 0x01;
/** Bytes of the id of a key, which signatures begin with. */
export const keyIdBytes = 4;
/** Bytes of an Ed25519 public key. */
export const publicKeyBytes = 32;
/** Bytes of the seed of an Ed25519 key. */
export const seedBytes = 32;
/** What a note may have at most, of which it is refused unread. */
const noteCharactersMax = 1_000_000;
const signaturesMax = 100;

/** A signature of a note, whosever it is. */
export interface NoteSignature {
  /** The name of the key. */
  readonly name: string;
  /** 8 lower-case hex digits. */
  readonly keyId: string;
  readonly signature: Uint8Array;
}

/** A note that was read; nothing of it is verified. */
export interface Note {
  /** What is signed: it ends with a newline. */
  readonly text: string;
  readonly signatures: readonly NoteSignature[];
}

/** What verifies the signatures of one key. */
export interface VerifierKey {
  readonly name: string;
  /** 8 lower-case hex digits. */
  readonly keyId: string;
  readonly publicKey: KeyObject;
}

/** What signs notes. */
export interface SigningKey {
  /** The verifier key: name, key id and public key with its type, between them `+`. */
  readonly vkey: string;
  /** The signature line of a note with this text, with the newline behind it. */
  sign(text: string): string;
}

/** A note, verifier key or the like is not of its format; the message says how. */
export class NoteMalformed extends Error {
  override name = 'NoteMalformed';
}

/** Whether something can be the name of a key: not empty, and without blanks, `+` and control characters. */
export function isKeyName(name: string): boolean {
  return /^[^\s+\p{Cc}]+$/u.test(name);
}

/** The key that signs under a name; its seed is 32 bytes. */
export function signingKey(name: string, seed: Uint8Array): SigningKey {
  const privateKey = createPrivateKey({
    key: Buffer.concat([pkcs8OfSeed, seed]),
    format: 'der',
    type: 'pkcs8',
  });
  const { x = '' } = createPublicKey(privateKey).export({ format: 'jwk' });
  const typed = Buffer.concat([Buffer.of(ed25519), Buffer.from(x, 'base64url')]);
  const keyId = keyIdOf(name, typed);
  return {
    vkey: `${name}+${keyId.toString('hex')}+${typed.toString('base64')}`,
    sign: (text) => {
      const signature = sign(null, Buffer.from(text), privateKey);
      return `— ${name} ${Buffer.concat([keyId, signature]).toString('base64')}\n`;
    },
  };
}

/** What stands before the seed in a PKCS #8 private key (RFC 8410). */
const pkcs8OfSeed = Buffer.from('302e020100300506032b657004220420', 'hex');

/** Reads a verifier key. Throws NoteMalformed if it is none of Ed25519, or its id is not that of its name and key. */
export function readVerifierKey(vkey: string): VerifierKey {
  const [, name = '', keyId = '', base64 = ''] = /^([^+]+)\+([0-9a-f]{8})\+(.+)$/.exec(vkey) ?? [];
  const typed = fromBase64(base64);
  if (!isKeyName(name) || typed?.length !== 1 + publicKeyBytes || typed[0] !== ed25519)
    throw new NoteMalformed('it is no verifier key of Ed25519: name+8 hex digits+base64');
  if (keyIdOf(name, typed).toString('hex') !== keyId)
    throw new NoteMalformed(`its key id ${keyId} is not that of its name and key`);
  return { name, keyId, publicKey: ed25519PublicKey(typed.subarray(1)) };
}

/** The Ed25519 key with these 32 bytes. */
export function ed25519PublicKey(bytes: Buffer): KeyObject {
  return createPublicKey({
    key: { kty: 'OKP', crv: 'Ed25519', x: bytes.toString('base64url') },
    format: 'jwk',
  });
}

/** Reads a note. Throws NoteMalformed. */
export function readNote(note: string): Note {
  if (note.length > noteCharactersMax) throw new NoteMalformed('it is too long for a note');
  if (/[^\P{Cc}\n]/u.test(note) || !note.isWellFormed())
    throw new NoteMalformed('it has control characters, or is not Unicode');
  const end = note.lastIndexOf('\n\n');
  if (end < 0 || !note.endsWith('\n')) throw new NoteMalformed('it has no signatures behind a blank line');
  const lines = note.slice(end + 2, -1).split('\n');
  if (lines.length > signaturesMax) throw new NoteMalformed('it has too many signatures');
  return { text: note.slice(0, end + 1), signatures: lines.map(readSignature) };
}

function readSignature(line: string): NoteSignature {
  const [, name = '', base64 = ''] = /^— ([^ ]+) ([^ ]+)$/.exec(line) ?? [];
  const bytes = fromBase64(base64);
  if (!isKeyName(name) || bytes === undefined || bytes.length <= keyIdBytes)
    throw new NoteMalformed('it has a line that is no signature behind its blank line');
  const keyId = bytes.subarray(0, keyIdBytes).toString('hex');
  return { name, keyId, signature: bytes.subarray(keyIdBytes) };
}

/**
 * Whether one of these keys has signed a note. Signatures of other keys are left out of account. Throws NoteMalformed if one
 * that bears the name and id of such a key is not good.
 */
export function isSignedBy({ text, signatures }: Note, keys: readonly VerifierKey[]): boolean {
  const data = Buffer.from(text);
  let isSigned = false;
  for (const { name, keyId, signature } of signatures) {
    const key = keys.find((known) => known.name === name && known.keyId === keyId);
    if (key === undefined) continue;
    if (!verify(null, data, key.publicKey, signature))
      throw new NoteMalformed(`its signature by ${name}+${keyId} does not fit its text`);
    isSigned = true;
  }
  return isSigned;
}

/** The id of a key: the first four bytes of SHA-256 of name, newline, and the key behind its type. */
export function keyIdOf(name: string, typed: Uint8Array): Buffer {
  return hash('sha256', Buffer.concat([Buffer.from(`${name}\n`), typed]), 'buffer').subarray(0, keyIdBytes);
}

/** The bytes of standard base64 with its padding; undefined if the text is not exactly what they are written as. */
export function fromBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : undefined;
}
