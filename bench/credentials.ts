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

/** Platforms enough that none ever comes near its rate, 200 calls a second. */
const platforms = 256;
/** How long the service may take over all of them, in milliseconds. */
const issuingMs = 60_000;

/** Registers platforms at a running service, with the operator token that it put into its new sandbox. */
export async function issueCredentials(
  dataDir: string,
  internalPort: number | undefined,
): Promise<Credentials> {
  const { token } = JSON.parse(readFileSync(join(dataDir, 'sandbox-credentials.json'), 'utf8'));
  const url = `http://127.0.0.1:${internalPort}/artseal.v1.AdminService/CreateKey`;
  const signal = AbortSignal.timeout(issuingMs);
  const keys = await Promise.all(
    Array.from({ length: platforms }, async (_, place) => {
      const response = await fetch(url, {
        method: 'POST',
        signal,
        headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
        body: JSON.stringify({ name: `bench-${place + 1}`, tier: 'ENTERPRISE', unlimited: true }),
      });
      if (!response.ok) throw new Error(`The service issued no key: ${await response.text()}`);
      const { key, apiSecret } = (await response.json()) as { key: { apiKey: string }; apiSecret: string };
      return { apiKey: key.apiKey, apiSecret };
    }),
  );
  return { keys, token };
}
