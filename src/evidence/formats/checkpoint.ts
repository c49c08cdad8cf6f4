import { ed25519 } from '@noble/curves/ed25519.js';
import { base64, hex, readBase64, readDecimal, readHex, utf8 } from './encoding.ts';
import { badSignature, malformed } from './failure.ts';
import { proofHashesMax, readHash, sha256Of, type Tree } from './tree.ts';

/** Signed notes and verifier keys (c2sp.org/signed-note), and the checkpoints and proofs of logs that are written with them. */

/** Characters of a note at most: room for its text and a hundred signatures. */
const noteLengthMax = 256 * 1024;

const signaturesMax = 100;

const keyIdBytes = 4;
const publicKeyBytes = 32;

/** A signed note. Its signatures are not verified. */
type Note = ReturnType<typeof readNote>;

/** A signature line of a note. */
type NoteSignature = ReturnType<typeof readSignature>;

/** A key that verifies signatures of notes. */
export type VerifierKey = ReturnType<typeof verifierKeyOf>;

/** Signature types. */
export const signatureTypes = {
  /** Ed25519 over the text of the note: logs. */
  ed25519: 0x01,
  /** Ed25519 over a time and the text of a checkpoint (c2sp.org/tlog-cosignature): witnesses. */
  cosignature: 0x04,
} as const;

const keyName = /^[^\p{White_Space}+]+$/u;

/** Makes the verifier key of an Ed25519 public key of 32 bytes; `type` is one of `signatureTypes`, `id` has 8 hex digits. */
export function verifierKeyOf(name: string, type: number, publicKey: Uint8Array) {
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
export function readNote(note: string, what: string) {
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
  return {
    /** The whole note. */
    note,
    /** What is signed, with its final newline. */
    text: note.slice(0, end),
    signatures,
  };
}

/** Reads a signature line without its newline. Throws VerificationFailure MALFORMED. */
export function readSignature(line: string, what: string) {
  const [, name = '', encoded = ''] = /^\u2014 ([^ ]+) ([^ ]+)$/u.exec(line) ?? [];
  if (!keyName.test(name)) throw malformed(`a signature line of ${what} is not: dash, name, base64`);
  const bytes = readBase64(encoded, `a signature of ${what}`);
  if (bytes.length <= keyIdBytes) throw malformed(`a signature of ${what} is too short`);
  const keyId = hex(bytes.subarray(0, keyIdBytes));
  return { keyName: name, keyId, signature: bytes.subarray(keyIdBytes) };
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

/** Whether this is the Ed25519 signature of a text, by the strict rules of RFC 8032: each signature has one form. */
function isEd25519(signature: Uint8Array, text: string, publicKey: Uint8Array): boolean {
  try {
    return ed25519.verify(signature, utf8(text), publicKey, { zip215: false });
  } catch {
    // The library throws if the signature has another length or the key is not a point of the curve.
    return false;
  }
}

/** A signed tree head of a log (c2sp.org/tlog-checkpoint). Its signatures are not verified. */
export interface Checkpoint extends Tree, Note {
  /** The name of the log. */
  readonly origin: string;
  /** Lines of its text after the first three, which have no meaning here. */
  readonly extensions: readonly string[];
}

/** Reads a checkpoint. Throws VerificationFailure MALFORMED; `what` names the checkpoint in the message. */
export function readCheckpoint(noteText: string, what: string): Checkpoint {
  const note = readNote(noteText, what);
  const [origin = '', size = '', root = '', ...extensions] = note.text.slice(0, -1).split('\n');
  if (origin === '' || extensions.includes('')) {
    throw malformed(`${what} is not a checkpoint: name of the log, number of leaves, hash`);
  }
  return {
    ...note,
    origin,
    size: readDecimal(size, `the number of leaves of ${what}`),
    root: readHash(root, `the hash of ${what}`),
    extensions,
  };
}

/** Writes the text of a checkpoint, which is then signed. */
export function checkpointText({ origin, size, root }: Pick<Checkpoint, 'origin' | 'size' | 'root'>): string {
  return `${origin}\n${size}\n${base64(root)}\n`;
}

/** Finds the given keys of the log that signed a checkpoint. Throws VerificationFailure BAD_SIGNATURE if there is none. */
export function logSignersOf(
  checkpoint: Checkpoint,
  keys: readonly VerifierKey[],
  what: string,
): readonly VerifierKey[] {
  const own = keys.filter(({ name, type }) => name === checkpoint.origin && type === signatureTypes.ed25519);
  if (own.length === 0) {
    const others = Array.from(new Set(keys.map(({ name }) => name))).join(', ');
    throw badSignature(
      `${what} is of the log ${checkpoint.origin}, and the given keys are of ${others || 'none'}`,
    );
  }
  const signers = findSigners(checkpoint, own, what);
  if (signers.length > 0) return signers;
  const names = checkpoint.signatures.map((line) => `${line.keyName} (${line.keyId})`).join(', ');
  throw badSignature(`no given key signed ${what}; it is signed by ${names}`);
}

/** Bytes of the time before the signature of a cosignature. */
const timeBytes = 8;

/**
 * Verifies the cosignature of a witness over the text of a checkpoint (c2sp.org/tlog-cosignature, Ed25519). Returns its time
 * in Unix seconds; undefined if the cosignature is not valid.
 */
export function readCosignature(
  signature: Uint8Array,
  text: string,
  { publicKey }: VerifierKey,
): number | undefined {
  const bytes = Uint8Array.from(signature);
  if (bytes.length <= timeBytes) return undefined;
  const timeS = Number(new DataView(bytes.buffer).getBigUint64(0));
  const message = `cosignature/v1\ntime ${timeS}\n${text}`;
  const isValid = Number.isSafeInteger(timeS) && isEd25519(bytes.subarray(timeBytes), message, publicKey);
  return isValid ? timeS : undefined;
}

/** A proof that a leaf is in a tree (c2sp.org/tlog-proof). It is not verified. */
export type LogProof = ReturnType<typeof readLogProof>;

const proofHeader = 'c2sp.org/tlog-proof@v1';

/** Reads a proof without extra data. Throws VerificationFailure MALFORMED; `what` names the proof in the message. */
export function readLogProof(text: string, what: string) {
  const end = text.indexOf('\n\n');
  const [header, indexLine = '', ...hashes] = text.slice(0, Math.max(end, 0)).split('\n');
  if (header !== proofHeader) throw malformed(`${what} does not begin with the line ${proofHeader}`);
  if (!indexLine.startsWith('index '))
    throw malformed(`the second line of ${what} is not the index of the leaf`);
  if (hashes.length > proofHashesMax) throw malformed(`${what} has more than ${proofHashesMax} hashes`);
  return {
    /** From 0. */
    index: readDecimal(indexLine.slice('index '.length), `the index of ${what}`),
    /** The inclusion path: the sibling of the leaf first. */
    path: hashes.map((line) => readHash(line, `a hash of ${what}`)),
    checkpoint: readCheckpoint(text.slice(end + 2), `the checkpoint of ${what}`),
  };
}

/** Writes a proof that ends with the note of a checkpoint. */
export function proofText(index: number, path: readonly Uint8Array[], note: string): string {
  return `${proofHeader}\nindex ${index}\n${hashLines(path)}\n${note}`;
}

/** Writes hashes in base64, a line each. */
export const hashLines = (hashes: readonly Uint8Array[]): string =>
  hashes.map((hash) => `${base64(hash)}\n`).join('');
