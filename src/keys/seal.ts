import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

/** The length of the keys that `seal` takes, in bytes. */
export const sealKeyBytes = 32;

const algorithm = 'aes-256-gcm';
const ivBytes = 12;
const tagBytes = 16;

/** How many bytes a seal is longer than what is sealed. */
export const sealOverheadBytes = ivBytes + tagBytes;

/** Encrypts and authenticates with AES-256-GCM: IV, tag and ciphertext. It opens with the same `context` alone. */
export function seal(key: Uint8Array, plain: Uint8Array, context: string): Buffer {
  const iv = randomBytes(ivBytes);
  const cipher = createCipheriv(algorithm, key, iv).setAAD(Buffer.from(context));
  const sealed = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), sealed]);
}

/** Opens what `seal` made; throws if it was altered, or sealed under another key or in another context. */
export function unseal(key: Uint8Array, bytes: Uint8Array, context: string): Buffer {
  const iv = bytes.subarray(0, ivBytes);
  const tag = bytes.subarray(ivBytes, sealOverheadBytes);
  const decipher = createDecipheriv(algorithm, key, iv, { authTagLength: tagBytes });
  decipher.setAAD(Buffer.from(context)).setAuthTag(tag);
  return Buffer.concat([decipher.update(bytes.subarray(sealOverheadBytes)), decipher.final()]);
}
