import { createRestClient, type RestClient } from '../client/rest.ts';
import type { ApiCredentials } from '../client/sign.ts';
import { clientVariables, readPublicUrl, settings } from '../config/config.ts';
import { readSandboxCredentials, sandboxCredentialsFile } from '../config/sandbox-credentials.ts';
import { ConfigError, readAll, textOf } from '../config/settings.ts';

const dataDirOf = (env: NodeJS.ProcessEnv): string => textOf(env, settings.dataDir);

/** The key and secret to sign with: from the environment, or those of the sandbox in the data folder. Throws ConfigError. */
export function readCredentials(env: NodeJS.ProcessEnv): ApiCredentials {
  const apiKey = env[clientVariables.apiKey];
  const apiSecret = env[clientVariables.apiSecret];
  if (apiKey && apiSecret) return { apiKey, apiSecret };
  const [set, missing] = apiKey
    ? [clientVariables.apiKey, clientVariables.apiSecret]
    : [clientVariables.apiSecret, clientVariables.apiKey];
  if (apiKey || apiSecret) throw new ConfigError([`${missing} is required where ${set} is set.`]);
  const sandbox = readSandboxCredentials(dataDirOf(env));
  if (sandbox !== undefined) return sandbox;
  const pair = `${clientVariables.apiKey} and ${clientVariables.apiSecret}`;
  throw new ConfigError([`${pair} are required: there is no ${sandboxCredentialsFile(dataDirOf(env))}.`]);
}

/**
 * A client for the service and with the credentials that the environment names. Throws ConfigError with
 * the faults of all of them; a request that nothing answers is rejected with an Error that says so.
 */
export function openRestClient(env: NodeJS.ProcessEnv): RestClient {
  const { url, credentials } = readAll({
    url: () => publicUrl(env),
    credentials: () => readCredentials(env),
  });
  const client = createRestClient(url, credentials);
  return {
    send: async (...request) => {
      try {
        return await client.send(...request);
      } catch (error) {
        // The one error of fetch that is about the network.
        if (!(error instanceof TypeError && error.message === 'fetch failed')) throw error;
        throw new Error(failureAt(url, reasonOf(error.cause)));
      }
    },
  };
}

/** Where the public door of the service is, as an origin. Throws ConfigError. */
export function publicUrl(env: NodeJS.ProcessEnv): string {
  const given = env[clientVariables.url];
  if (!given) return readPublicUrl(env);
  const url = URL.parse(given);
  if (url !== null && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`) return url.origin;
  // Not repeated: it may hold a password.
  const rule = 'must be a URL such as http://127.0.0.1:8080, of http or https, without a path or a password';
  throw new ConfigError([`${clientVariables.url} ${rule}.`]);
}

/** What a failed connection means, and what to do. */
function failureAt(url: string, reason: string): string {
  if (reason === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return `the certificate at ${url} has another name: set ${clientVariables.url} to https:// and a name that it has`;
  if (untrusted.has(reason))
    return `the certificate at ${url} is not trusted (${reason}): set NODE_EXTRA_CA_CERTS to a PEM file of its authority`;
  return (
    `nothing answers at ${url} (${reason}): start it with artseal serve, ` +
    `or set ${clientVariables.url} to where the service is`
  );
}

/** The words of OpenSSL for a certificate whose authority is not known. */
const untrusted: ReadonlySet<string> = new Set([
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
]);

/** Why a connection failed, in a word: the code of the system or of TLS, or what fetch says by itself. */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  return 'code' in cause ? String(cause.code) : cause.message;
}
