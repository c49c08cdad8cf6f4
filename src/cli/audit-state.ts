import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { AuditState } from '../evidence/verifier/index.ts';
import { replaceFileSync } from '../lib/replace-file.ts';

/** The version of the format. A state of another version is ignored. */
const formatVersion = 3;

/** Bytes of an uncompressed state at most: enough for decades of filings. */
const stateBytesMax = 512 * 1024 * 1024;

/** Returns the name of the file beside a pin that holds the state of the audit. */
export function stateFileOf(pinFile: string): string {
  return `${pinFile}.audit`;
}

/** Reads the state of an audit; undefined if there is none that can be used. */
export function readState(file: string): AuditState | undefined {
  if (!existsSync(file)) return undefined;
  try {
    const { sum, text } = JSON.parse(
      gunzipSync(readFileSync(file), { maxOutputLength: stateBytesMax }).toString(),
    );
    return sum === sumOf(text) ? (JSON.parse(text, revive) as AuditState) : undefined;
  } catch {
    return undefined;
  }
}

/** Writes the state of an audit. */
export function writeState(file: string, state: AuditState): void {
  const text = JSON.stringify(state, replace);
  replaceFileSync(file, gzipSync(JSON.stringify({ sum: sumOf(text), text }), { level: 1 }));
}

/** A checksum against damage. It does not protect against intent: auditors own their state. */
const sumOf = (text: string): string =>
  createHash('sha256').update(`${formatVersion}\n${text}`).digest('hex');

/** Writes values that JSON lacks as an object with one member, which names the type. */
function replace(_name: string, value: unknown): unknown {
  if (value instanceof Map) return { map: [...value] };
  if (value instanceof Uint16Array) return { uint16: base64(value) };
  if (value instanceof Uint32Array) return { uint32: base64(value) };
  return value instanceof Uint8Array ? { bytes: base64(value) } : value;
}

function revive(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  if ('map' in value) return new Map(value.map as [unknown, unknown][]);
  if ('uint16' in value) return new Uint16Array(readBase64(value.uint16).buffer);
  if ('uint32' in value) return new Uint32Array(readBase64(value.uint32).buffer);
  return 'bytes' in value ? readBase64(value.bytes) : value;
}

const base64 = ({ buffer, byteOffset, byteLength }: Uint8Array | Uint16Array | Uint32Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString('base64');

const readBase64 = (text: unknown): Uint8Array<ArrayBuffer> =>
  new Uint8Array(Buffer.from(String(text), 'base64'));
