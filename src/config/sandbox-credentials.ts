import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Actor } from '../domain/audit-entry.ts';
import type { FirstCredentials, Issuance } from '../keys/issuance.ts';
import { perform, type Store } from '../store/store.ts';

/** The first credentials of a sandbox: a platform without quota, and an operator token. */
export interface SandboxCredentials extends FirstCredentials {
  readonly caller: string;
  readonly tier: string;
}

/** The file of a sandbox's credentials in its data folder. */
export const sandboxCredentialsName = 'sandbox-credentials.json';

/** Returns the path of that file, which has mode 0600. */
export function sandboxCredentialsFile(dataDir: string): string {
  return join(dataDir, sandboxCredentialsName);
}

/** Issues a key and an operator token if the store has no callers yet. Returns whether it did. */
export async function issueSandboxCredentials(
  { store, issuance }: { readonly store: Store; readonly issuance: Issuance },
  dataDir: string,
  by: Actor,
): Promise<boolean> {
  if (await perform(store, { kind: 'HasCallers' })) return false;
  const file = sandboxCredentialsFile(dataDir);
  // Before anything is issued: with a caller in the store there is no second first start.
  writeFileSync(`${file}.new`, '', { mode: 0o600 });
  const [caller, tier] = ['sandbox-platform', 'ENTERPRISE'] as const;
  const agreement = { name: caller, tier, monthlyQuota: undefined, unlimited: true };
  await issuance.issueFirst(agreement, 'sandbox-operator', by, (first) => {
    const credentials: SandboxCredentials = { ...first, caller, tier };
    const text = `${JSON.stringify(credentials, undefined, 2)}\n`;
    writeFileSync(`${file}.new`, text, { mode: 0o600, flush: true });
    renameSync(`${file}.new`, file);
  });
  return true;
}

/** Reads the credentials of a sandbox; undefined if there are none. Throws if they cannot be read. */
export function readSandboxCredentials(dataDir: string): SandboxCredentials | undefined {
  const file = sandboxCredentialsFile(dataDir);
  if (!existsSync(file)) return undefined;
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new Error(`${file} cannot be read`, { cause: error });
  }
}
