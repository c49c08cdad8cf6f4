import { ed25519 } from '@noble/curves/ed25519.js';
import { hex, isSame, readBase64, readHex, utf8 } from './encoding.ts';
import { malformed, VerificationFailure } from './failure.ts';
import { sha256Of } from './tree.ts';

/** Signed notes, as c2sp.org/signed-note has them. */

/** The most characters of a note: room for its text and a hundred signatures, of which some may be long. */
const noteLengthMax = 256 * 1024;

/** The most signatures of a note. */
const signaturesMax = 100;

/** Bytes of a key id, which signatures begin with. */
const keyIdBytes = 4;

/** A text with signatures that nobody has checked yet. */
export interface Note {
  /** What is signed, with the newline at its end. */
  readonly text: string;
  readonly signatures: readonly NoteSignature[];
}

/** A signature line of a note. */
export interface NoteSignature {
  readonly keyName: string;
  /** 8 hex digits. */
  readonly keyId: string;
  /** What stands behind the key id: for Ed25519 the 64 bytes of the signature. */
  readonly signature: Uint8Array;
}

/** A key that signatures of notes are checked with. */
export interface VerifierKey {
  /** As it was given: `<name>+<id>+<base64>`. */
  readonly vkey: string;
  readonly name: string;
  /** 8 hex digits. */
  readonly id: string;
  /** The byte that tells the kind of signature: see `signatureTypes`. */
  readonly type: number;
  readonly publicKey: Uint8Array;
}

/** Kinds of signatures. */
export const signatureTypes = {
  /** Ed25519 over the text of the note: what logs sign with. */
  ed25519: 0x01,
  /** Ed25519 over a time and the text: what witnesses cosign checkpoints with (c2sp.org/tlog-cosignature). */
  cosignature: 0x04,
} as const;

const publicKeyBytes = 32;

/** No Unicode spaces and no plus. */
const keyName = /^[^\p{White_Space}+]+$/u;

/** Reads a verifier key, `<name>+<id>+<base64 of type and public key>`; throws VerificationFailure MALFORMED. */
export function readVerifierKey(vkey: string): VerifierKey {
  const [, name = '', id = '', encoded = ''] = /^([^+]*)\+([^+]*)\+(.*)$/su.exec(vkey) ?? [];
  if (!vkey.isWellFormed() || !keyName.test(name)) {
    throw malformed(
      'a verifier key has to be <name>+<8 hex digits>+<base64>, all of it as it was handed over',
    );
  }
  const idBytes = readHex(id, keyIdBytes, 'the id of the verifier key');
  const material = readBase64(encoded, 'the last part of the verifier key');
  const type = material[0] ?? 0;
  if (!Object.values<number>(signatureTypes).includes(type) || material.length !== 1 + publicKeyBytes) {
    throw malformed('the verifier key is of a kind that is not known here: it has to be an Ed25519 key');
  }
  if (!isSame(sha256Of(utf8(`${name}\n`), material).subarray(0, keyIdBytes), idBytes)) {
    throw malformed(
      'the verifier key contradicts itself: its id is not that of its name and key, so it was mistyped or changed',
    );
  }
  return { vkey, name, id, type, publicKey: material.subarray(1) };
}

/** Reads a note; throws VerificationFailure MALFORMED that names it by `what`. */
export function readNote(note: string, what: string): Note {
  if (note.length > noteLengthMax) throw malformed(`${what} is longer than ${noteLengthMax} characters`);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  if (!note.isWellFormed() || /[\u0000-\u0009\u000b-\u001f]/.test(note)) {
    throw malformed(`${what} has characters that a signed note may not have`);
  }
  const end = note.lastIndexOf('\n\n') + 1;
  if (end <= 1 || !note.endsWith('\n'))
    throw malformed(`${what} is not a signed note: a text, an empty line, signatures`);
  const lines = note.slice(end + 1, -1).split('\n');
  if (lines.length > signaturesMax) throw malformed(`${what} has more than ${signaturesMax} signatures`);
  return { text: note.slice(0, end), signatures: lines.map((line) => readSignature(line, what)) };
}

function readSignature(line: string, what: string): NoteSignature {
  const [, name = '', encoded = ''] = /^\u2014 ([^ ]+) ([^ ]+)$/u.exec(line) ?? [];
  if (!keyName.test(name)) throw malformed(`a signature line of ${what} is not: dash, name, base64`);
  const bytes = readBase64(encoded, `a signature of ${what}`);
  if (bytes.length <= keyIdBytes) throw malformed(`a signature of ${what} is too short`);
  return { keyName: name, keyId: hex(bytes.subarray(0, keyIdBytes)), signature: bytes.subarray(keyIdBytes) };
}

/**
 * The keys, of those given, that signed a note: at least one. Signatures of other keys are ignored. Throws
 * VerificationFailure BAD_SIGNATURE if there is none, and if the signature of a given key does not verify, even beside
 * another that does.
 */
export function signersOf(note: Note, keys: readonly VerifierKey[], what: string): readonly VerifierKey[] {
  const signers = new Set<VerifierKey>();
  for (const { keyName: name, keyId, signature } of note.signatures) {
    for (const key of keys.filter((candidate) => candidate.name === name && candidate.id === keyId)) {
      if (!isEd25519(signature, note.text, key.publicKey)) {
        throw new VerificationFailure(
          'BAD_SIGNATURE',
          `${what} bears a signature of ${name} (${keyId}) that is not valid`,
        );
      }
      signers.add(key);
    }
  }
  if (signers.size === 0) {
    const names = note.signatures.map(({ keyName: name, keyId }) => `${name} (${keyId})`).join(', ');
    throw new VerificationFailure(
      'BAD_SIGNATURE',
      `no key that was given signed ${what}; it is signed by ${names}`,
    );
  }
  return [...signers];
}

/** Whether this is the signature of a text, by RFC 8032 to the letter: one signature has one form. */
export function isEd25519(signature: Uint8Array, text: string, publicKey: Uint8Array): boolean {
  try {
    return ed25519.verify(signature, utf8(text), publicKey, { zip215: false });
  } catch {
    // What is no signature and no key at all.
    return false;
  }
}
