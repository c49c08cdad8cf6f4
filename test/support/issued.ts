import type { TestContext } from 'node:test';
import type { ApiCredentials } from '../../src/client/sign.ts';
import { readConfig } from '../../src/config/config.ts';
import { openRegistry } from '../../src/operations/registry.ts';
import { artsealWith } from './artseal.ts';
import { tester } from './audit-log.ts';
import { withDatabase } from './engine.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { operatorTerms } from './tokens.ts';
import { serveWatched, type WatchedService } from './watched-command.ts';

/** A platform of a deployment. */
export interface IssuedPlatform extends ApiCredentials {
  readonly keyId: string;
  readonly caller: string;
}

/** Makes an empty sandbox in a data folder, as `artseal init` does. */
export async function makeSandbox(dataDir: string): Promise<void> {
  const { store } = await openRegistry(readConfig({ ARTSEAL_DATA_DIR: dataDir }), 'NEW');
  await store.close();
}

/** What was issued into a data folder. */
export interface Issued {
  readonly platforms: IssuedPlatform[];
  /** The first of them. */
  readonly platform: IssuedPlatform;
  readonly token: string;
}

/**
 * Issues to a data folder ENTERPRISE platforms without quota and an operator token, as `artseal key` does; its registry is made
 * with these settings if there is none.
 */
export async function issueInto(
  dataDir: string,
  platforms: number,
  settings: Readonly<Record<string, string>> = {},
): Promise<Issued> {
  const config = readConfig(await withDatabase({ ...settings, ARTSEAL_DATA_DIR: dataDir }));
  const { store, issuance } = await openRegistry(config, 'EITHER');
  try {
    const issued: IssuedPlatform[] = [];
    for (let number = 1; number <= platforms; number += 1) {
      const name = `platform-${number}`;
      const { key, apiSecret } = await issuance.issueKey(
        {
          name,
          tier: 'ENTERPRISE',
          monthlyQuota: undefined,
          unlimited: true,
        },
        tester,
      );
      issued.push({ keyId: key.keyId, apiKey: key.apiKey, caller: key.caller, apiSecret });
    }
    const { token } = await issuance.issueToken(operatorTerms('operator'), tester);
    const [platform] = issued as [IssuedPlatform];
    return { platforms: issued, platform, token };
  } finally {
    await store.close();
  }
}

/** A new data folder with platform-1, its key and an operator token, and `artseal` on it with these settings. */
export async function registryWithPlatform(t: TestContext, settings: Readonly<Record<string, string>> = {}) {
  const env = { ...settings, ARTSEAL_DATA_DIR: temporaryFolder(t) };
  const { platform } = await issueInto(env.ARTSEAL_DATA_DIR, 1);
  return { env, keyId: platform.keyId, artseal: artsealWith(env) };
}

/** Starts `artseal serve` on a new data folder with one platform and a token; killed after the test. */
export async function serveIssued(
  test: Pick<TestContext, 'after'>,
  env: Record<string, string> = {},
): Promise<WatchedService & Omit<Issued, 'platforms'> & { readonly dataDir: string }> {
  const dataDir = temporaryFolder(test);
  const { platform, token } = await issueInto(dataDir, 1);
  return { ...(await serveWatched(test, { ARTSEAL_DATA_DIR: dataDir, ...env })), dataDir, platform, token };
}
