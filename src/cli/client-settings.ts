import type { ApiCredentials } from '../client/sign.ts';
import { clientVariables, settings } from '../config.ts';
import { readSandboxCredentials, sandboxCredentialsFile } from '../sandbox-credentials.ts';
import { UsageError } from './command.ts';

const dataDirOf = (env: NodeJS.ProcessEnv): string =>
  env[settings.dataDir.variable] || settings.dataDir.fallback;

/** The key and secret to sign with: from the environment, or those of the sandbox in the data folder. Throws UsageError. */
export function readCredentials(env: NodeJS.ProcessEnv): ApiCredentials {
  const apiKey = env[clientVariables.apiKey];
  const apiSecret = env[clientVariables.apiSecret];
  if (apiKey && apiSecret) return { apiKey, apiSecret };
  const sandbox = readSandboxCredentials(dataDirOf(env));
  if (sandbox !== undefined) return sandbox;
  throw new UsageError(
    `needs ${clientVariables.apiKey} and ${clientVariables.apiSecret}, or ${sandboxCredentialsFile(dataDirOf(env))}`,
  );
}

/** Where the public door of the service is. */
export function publicUrl(env: NodeJS.ProcessEnv): string {
  return (
    env[clientVariables.url] ||
    `http://${env[settings.publicAddress.variable] || settings.publicAddress.fallback}`
  );
}
