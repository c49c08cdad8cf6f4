import { ed25519 } from '@noble/curves/ed25519.js';
import { base64, hex, readBase64, readHex, utf8 } from './encoding.ts';
import { badSignature, malformed } from './failure.ts';
import { sha256Of } from './tree.ts';

/** Signed notes and verifier keys: c2sp.org/signed-note. */

/** Characters of a note at most: room for its text and a hundred signatures. */
const noteLengthMax = 256 * 1024;

/** Signatures of a note at most. */
const signaturesMax = 100;

/** Bytes of a key ID. */
const keyIdBytes = 4;

/** Bytes of an Ed25519 public key. */
const publicKeyBytes = 32;

/** A signed note. Its signatures are not verified. */
export interface Note {
  /** The whole note. */
  readonly note: string;
  /** The text that is signed, with its final newline. */
  readonly text: string;
  readonly signatures: readonly NoteSignature[];
}

/** A signature line of a note. */
export interface NoteSignature {
  readonly keyName: string;
  /** 8 hex digits. */
  readonly keyId: string;
  /** The bytes after the key ID. */
  readonly signature: Uint8Array;
}

/** A key that verifies signatures of notes. */
export interface VerifierKey {
  /** `<name>+<key ID>+<base64>`. */
  readonly vkey: string;
  readonly name: string;
  /** 8 hex digits. */
  readonly id: string;
  /** One of `signatureTypes`. */
  readonly type: number;
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
}

/** Signature types. */
export const signatureTypes = {
  /** Ed25519 over the text of the note: logs. */
  ed25519: 0x01,
  /** Ed25519 over a time and the text of a checkpoint (c2sp.org/tlog-cosignature): witnesses. */
  cosignature: 0x04,
} as const;

const keyName = /^[^\p{White_Space}+]+$/u;

/** Makes the verifier key of an Ed25519 public key. */
export function verifierKeyOf(name: string, type: number, publicKey: Uint8Array): VerifierKey {
  const material = Uint8Array.of(type, ...publicKey);
  const id = hex(sha256Of(utf8(`${name}\n`), material).subarray(0, keyIdBytes));
  return { vkey: `${name}+${id}+${base64(material)}`, name, id, type, publicKey };
}

/** Reads a verifier key. Throws VerificationFailure MALFORMED. */
export function readVerifierKey(vkey: string): VerifierKey {
  const [, name = '', id = '', encoded = ''] = /^([^+]*)\+([^+]*)\+(.*)$/su.exec(vkey) ?? [];
  if (!vkey.isWellFormed() || !keyName.test(name)) {
    throw malformed('a verifier key has to be <name>+<8 hex digits>+<base64>, without spaces');
  }
  readHex(id, keyIdBytes, 'the key ID of the verifier key');
  const material = readBase64(encoded, 'the last part of the verifier key');
  const type = material[0] ?? 0;
  if (!Object.values<number>(signatureTypes).includes(type) || material.length !== 1 + publicKeyBytes) {
    throw malformed('the verifier key has an unknown type: it has to be an Ed25519 key');
  }
  const key = verifierKeyOf(name, type, material.subarray(1));
  if (key.id === id) return key;
  throw malformed(
    `the verifier key has the key ID ${id}, but its name and key have ${key.id}: copy it again`,
  );
}

/** Reads a note. Throws VerificationFailure MALFORMED; `what` names the note in the message. */
export function readNote(note: string, what: string): Note {
  if (note.length > noteLengthMax) throw malformed(`${what} is longer than ${noteLengthMax} characters`);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: notes must not contain them.
  if (!note.isWellFormed() || /[\u0000-\u0009\u000b-\u001f]/.test(note)) {
    throw malformed(`${what} has control characters, or is not Unicode`);
  }
  const end = note.lastIndexOf('\n\n') + 1;
  if (end <= 1 || !note.endsWith('\n'))
    throw malformed(`${what} is not a signed note: a text, an empty line, signatures`);
  const lines = note.slice(end + 1, -1).split('\n');
  if (lines.length > signaturesMax) throw malformed(`${what} has more than ${signaturesMax} signatures`);
  const signatures = lines.map((line) => readSignature(line, what));
  return { note, text: note.slice(0, end), signatures };
}

/** Reads a signature line without its newline. Throws VerificationFailure MALFORMED. */
export function readSignature(line: string, what: string): NoteSignature {
  const [, name = '', encoded = ''] = /^\u2014 ([^ ]+) ([^ ]+)$/u.exec(line) ?? [];
  if (!keyName.test(name)) throw malformed(`a signature line of ${what} is not: dash, name, base64`);
  const bytes = readBase64(encoded, `a signature of ${what}`);
  if (bytes.length <= keyIdBytes) throw malformed(`a signature of ${what} is too short`);
  return { keyName: name, keyId: hex(bytes.subarray(0, keyIdBytes)), signature: bytes.subarray(keyIdBytes) };
}

/** Writes a signature line, with its newline. */
export function signatureLine({ name, id }: VerifierKey, signature: Uint8Array): string {
  return `\u2014 ${name} ${base64(Uint8Array.of(...readHex(id, keyIdBytes, 'the key ID'), ...signature))}\n`;
}

/** Whether a signature line names this key. */
export const isOf = ({ keyName: name, keyId }: NoteSignature, key: VerifierKey): boolean =>
  key.name === name && key.id === keyId;

/**
 * Finds the given keys that signed a note, and ignores signatures of other keys. Throws VerificationFailure BAD_SIGNATURE if
 * a signature of a given key is not valid, even if another one is.
 */
export function findSigners(
  { text, signatures }: Note,
  keys: readonly VerifierKey[],
  what: string,
): readonly VerifierKey[] {
  const signers = new Set<VerifierKey>();
  for (const line of signatures) {
    for (const key of keys.filter((given) => isOf(line, given))) {
      if (!isEd25519(line.signature, text, key.publicKey))
        throw badSignature(`${what} has a signature of ${key.name} (${key.id}) that is not valid`);
      signers.add(key);
    }
  }
  return [...signers];
}

/** The same, but throws VerificationFailure BAD_SIGNATURE if no given key signed the note. */
export function signersOf(note: Note, keys: readonly VerifierKey[], what: string): readonly VerifierKey[] {
  const signers = findSigners(note, keys, what);
  if (signers.length > 0) return signers;
  const names = note.signatures.map((line) => `${line.keyName} (${line.keyId})`).join(', ');
  throw badSignature(`no given key signed ${what}; it is signed by ${names}`);
}

/** Whether this is the Ed25519 signature of a text, by the strict rules of RFC 8032: each signature has one form. */
export function isEd25519(signature: Uint8Array, text: string, publicKey: Uint8Array): boolean {
  try {
    return ed25519.verify(signature, utf8(text), publicKey, { zip215: false });
  } catch {
    // The library throws if the signature has another length or the key is not a point of the curve.
    return false;
  }
}
