import type { TestContext } from 'node:test';
import { type App, startApp } from '../../src/app/app.ts';
import type { Simulated } from '../../src/app/start.ts';
import type { ApiCredentials } from '../../src/client/sign.ts';
import { createTypedTransport } from '../../src/client/typed.ts';
import { readConfig } from '../../src/config/config.ts';
import type { Tier } from '../../src/domain/caller.ts';
import { scopes, type TokenTerms } from '../../src/domain/token.ts';
import { createLog } from '../../src/lib/log.ts';
import { tester } from './audit-log.ts';
import { withDatabase } from './engine.ts';
import { anyAddresses } from './free-address.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { tokenTerms } from './tokens.ts';
import { type TypedClients, typedClients } from './typed-clients.ts';

/** A service in this process, with real sockets and a real database file. */
export interface TestService extends App {
  readonly dataDir: string;
  /** The lines logged so far. */
  readonly logLines: readonly string[];
  /** Registers a platform with a new name. */
  platform(tier?: Tier, monthlyQuota?: number): Promise<ApiCredentials & { keyId: string; caller: string }>;
  /** Issues a token to an internal system. */
  token(operator?: boolean): Promise<string>;
  /** The clients of an internal system with a new token of these terms, by default of one that does business. */
  clients(terms?: Partial<TokenTerms>): Promise<TypedClients>;
  /** The clients of a new operator, and how the audit log names it. */
  operator(): Promise<TypedClients & { readonly actor: string }>;
}

/** What a test can set: time, provider, settings, and the folder of an earlier service. */
export interface ServiceOptions extends Simulated {
  readonly env?: Record<string, string>;
  readonly dataDir?: string;
}

let named = 0;

/** Starts a service, which is closed after the test. By default its store works in this thread. */
export async function startService(
  test: Pick<TestContext, 'after'>,
  {
    env = {},
    dataDir = temporaryFolder(test),
    isStoreInThisThread = true,
    ...simulated
  }: ServiceOptions = {},
): Promise<TestService> {
  const addresses = { ...anyAddresses, ARTSEAL_METRICS_ADDR: 'off' };
  const config = readConfig(await withDatabase({ ...addresses, ARTSEAL_DATA_DIR: dataDir, ...env }));
  const logLines: string[] = [];
  const log = createLog({ write: (line) => logLines.push(line) });
  const app = await startApp(config, log, { ...simulated, isStoreInThisThread });
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= app.close();
    return closing;
  };
  test.after(close);
  const issue = (terms: Partial<TokenTerms>) => {
    named += 1;
    return app.issuance.issueToken(tokenTerms(`service-${named}`, terms), tester);
  };
  const clientsOf = (token: string) => typedClients(createTypedTransport(app.internalUrl, token));
  return {
    ...app,
    close,
    dataDir,
    logLines,
    platform: async (tier = 'ENTERPRISE', monthlyQuota) => {
      named += 1;
      const unlimited = tier === 'ENTERPRISE' && monthlyQuota === undefined;
      const issued = await app.issuance.issueKey(
        { name: `platform-${named}`, tier, monthlyQuota, unlimited },
        tester,
      );
      const { keyId, apiKey, caller } = issued.key;
      return { keyId, apiKey, caller, apiSecret: issued.apiSecret };
    },
    token: async (operator = false) => (await issue(operator ? { scopes } : {})).token,
    clients: async (terms = {}) => clientsOf((await issue(terms)).token),
    operator: async () => {
      const { token, stored } = await issue({ scopes });
      return { ...clientsOf(token), actor: `token ${stored.tokenId} (${stored.caller})` };
    },
  };
}
