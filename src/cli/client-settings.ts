import type { ApiCredentials } from '../client/sign.ts';
import { settings } from '../config.ts';
import { readSandboxCredentials, sandboxCredentialsFile } from '../sandbox-credentials.ts';
import { UsageError } from './command.ts';

/** The variables that say how to call a service; a sandbox on this machine needs none of them. */
export const clientVariables = {
  url: 'ARTSEAL_URL',
  apiKey: 'ARTSEAL_API_KEY',
  apiSecret: 'ARTSEAL_API_SECRET',
} as const;

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

/** The operator token of the sandbox in the data folder. Throws UsageError. */
export function readToken(env: NodeJS.ProcessEnv): string {
  const token = readSandboxCredentials(dataDirOf(env))?.token;
  if (token === undefined)
    throw new UsageError(`needs a sandbox: ${sandboxCredentialsFile(dataDirOf(env))} is not there`);
  return token;
}

/** Where the public door of the service is. */
export function publicUrl(env: NodeJS.ProcessEnv): string {
  return (
    env[clientVariables.url] ||
    `http://${env[settings.publicAddress.variable] || settings.publicAddress.fallback}`
  );
}

/** Where the typed door of the service is. */
export function internalUrl(env: NodeJS.ProcessEnv): string {
  return `http://${env[settings.internalAddress.variable] || settings.internalAddress.fallback}`;
}
