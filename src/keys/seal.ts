import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

/** The length of a key, in bytes. */
export const sealKeyBytes = 32;

const algorithm = 'aes-256-gcm';
const ivBytes = 12;
const tagBytes = 16;

/** Bytes that a ciphertext is longer than its plaintext. */
const sealOverheadBytes = ivBytes + tagBytes;

/** Encrypts with AES-256-GCM. Returns IV, tag and ciphertext, which open only with the same `context`. */
export function seal(key: Uint8Array, plain: Uint8Array, context: string): Buffer {
  const iv = randomBytes(ivBytes);
  const cipher = createCipheriv(algorithm, key, iv).setAAD(Buffer.from(context));
  const sealed = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), sealed]);
}

/** Decrypts a ciphertext. Throws if it was altered, or made with another key or context. */
export function unseal(key: Uint8Array, bytes: Uint8Array, context: string): Buffer {
  const iv = bytes.subarray(0, ivBytes);
  const tag = bytes.subarray(ivBytes, sealOverheadBytes);
  const decipher = createDecipheriv(algorithm, key, iv, { authTagLength: tagBytes });
  decipher.setAAD(Buffer.from(context)).setAuthTag(tag);
  return Buffer.concat([decipher.update(bytes.subarray(sealOverheadBytes)), decipher.final()]);
}

/** Encrypts `plain` as base64url text. */
export function sealText(key: Uint8Array, plain: Uint8Array, context: string): string {
  return seal(key, plain, context).toString('base64url');
}

/** Opens the text of `plainBytes` that `sealText` made; undefined for any other text. */
export function unsealText(
  key: Uint8Array,
  text: string,
  plainBytes: number,
  context: string,
): Buffer | undefined {
  const sealed = Buffer.from(text, 'base64url');
  // Buffer.from skips characters that are not base64url, so the text is compared, too.
  const isSeal = sealed.length === sealOverheadBytes + plainBytes && sealed.toString('base64url') === text;
  try {
    return isSeal ? unseal(key, sealed, context) : undefined;
  } catch {
    return undefined;
  }
}
