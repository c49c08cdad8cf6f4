import { hash } from 'node:crypto';

/** SHA-256. By way of a text, since Node takes twice as long to make a buffer for each hash itself. */
export const sha256 = (data: string | Uint8Array): Buffer =>
  Buffer.from(hash('sha256', data, 'latin1'), 'latin1');
