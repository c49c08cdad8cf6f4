import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Registry } from './app.ts';

/** What a sandbox gives its first developer. */
export interface SandboxCredentials {
  readonly keyId: string;
  readonly apiKey: string;
  readonly apiSecret: string;
  readonly caller: string;
  readonly tier: string;
  /** Operator token of the typed door. */
  readonly token: string;
}

const names = { platform: 'sandbox-platform', service: 'sandbox-operator' } as const;

/** Where the credentials of a sandbox are kept, mode 0600. */
export function sandboxCredentialsFile(dataDir: string): string {
  return join(dataDir, 'sandbox-credentials.json');
}

/** Issues a key and an operator token to a store that has no callers yet; false if it has some. */
export async function issueSandboxCredentials(
  { store, issuance }: Registry,
  dataDir: string,
): Promise<boolean> {
  if (!(await store.callers.isEmpty())) return false;
  const agreement = {
    name: names.platform,
    tier: 'TRIAL',
    monthlyQuota: undefined,
    unlimited: false,
  } as const;
  const { key, apiSecret } = await issuance.issueKey(agreement);
  const { token } = await issuance.issueToken(names.service, true);
  const { keyId, apiKey, caller, tier } = key;
  const credentials: SandboxCredentials = { keyId, apiKey, apiSecret, caller, tier, token };
  // The file first: credentials that were issued but are lost would be of no use to anybody.
  const file = sandboxCredentialsFile(dataDir);
  writeFileSync(`${file}.new`, `${JSON.stringify(credentials, undefined, 2)}\n`, {
    mode: 0o600,
    flush: true,
  });
  renameSync(`${file}.new`, file);
  await store.durable();
  return true;
}

/** Reads the credentials of a sandbox; undefined if there are none to be read. */
export function readSandboxCredentials(dataDir: string): SandboxCredentials | undefined {
  try {
    return JSON.parse(readFileSync(sandboxCredentialsFile(dataDir), 'utf8'));
  } catch {
    return undefined;
  }
}
