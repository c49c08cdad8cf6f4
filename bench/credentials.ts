import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ApiCredentials } from '../src/client/sign.ts';

/** The credentials that a server accepts: keys of platforms at its public API, a bearer token at its internal API. */
export interface Credentials {
  readonly keys: readonly ApiCredentials[];
  readonly token: string;
}

const fileIn = (dir: string): string => join(dir, 'bench-credentials.json');

/** Reads the credentials that were written to a folder. */
export function readCredentials(dir: string): Credentials {
  return JSON.parse(readFileSync(fileIn(dir), 'utf8'));
}

/** Writes credentials to a folder, for servers and load generator to read. */
export function writeCredentials(dir: string, credentials: Credentials): void {
  writeFileSync(fileIn(dir), JSON.stringify(credentials));
}
