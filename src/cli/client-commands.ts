import { get as getOverHttp, type IncomingMessage } from 'node:http';
import { get as getOverTls } from 'node:https';
import { text } from 'node:stream/consumers';
import { createRestClient, type RestClient } from '../client/rest.ts';
import { type ApiCredentials, signedHeaders } from '../client/sign.ts';
import { clientVariables, readPublicUrl, settings } from '../config/config.ts';
import { readSandboxCredentials, sandboxCredentialsFile } from '../config/sandbox-credentials.ts';
import { ConfigError, readAll, textOf } from '../config/settings.ts';
import { exampleArtwork } from '../domain/example.ts';
import { commandName } from '../packaging/build-info.ts';
import { type Command, exitCodes, hangsPage, UsageError } from './command.ts';
import { readBounded } from './files.ts';

/** `artseal sign` */
export const sign: Command = {
  usage: 'sign METHOD TARGET [--body FILE|-]',
  summary: 'sign a request: print its four headers for curl',
  details: [
    'TARGET is the path with its query, exactly as you send it. --body - reads the body from standard input.',
    `Signs with ${clientVariables.apiKey} and ${clientVariables.apiSecret}, or with the credentials of the sandbox.`,
    'Send the body byte for byte as signed: curl --data-binary @FILE.',
    `Example: curl -H @<(${commandName} sign GET /api/v1/provenance/AS-2026-000001) http://…`,
  ],
  run: async (words, { env, print }) => {
    const target = readTarget(words.required('TARGET'));
    const credentials = readCredentials(env);
    const method = words.required('METHOD').toUpperCase();
    const file = words.text('body');
    const body = file === undefined ? new Uint8Array() : await readBounded(file, Number.MAX_SAFE_INTEGER);
    const headers = signedHeaders(credentials, { method, target, body });
    for (const [name, value] of Object.entries(headers)) print(`${name}: ${value}`);
  },
};

/** `artseal call` */
export const call: Command = {
  usage: 'call METHOD TARGET [JSON] [--idempotency-key KEY]',
  summary: 'sign a request, send it and print the response',
  details: [
    `Sends to ${clientVariables.url}, or to ARTSEAL_PUBLIC_ADDR, with the credentials that sign uses.`,
    'Prints the status line to standard error and the body to standard output. Exit code 1 for an error response.',
  ],
  run: async (words, { env, print, printError }) => {
    const method = words.required('METHOD').toUpperCase();
    const target = readTarget(words.required('TARGET'));
    const json = words.text('JSON');
    if (json !== undefined && (method === 'GET' || method === 'HEAD'))
      throw new UsageError(`takes no JSON with ${method}, which has no body`);
    const key = words.text('idempotency-key');
    const headers = key === undefined ? {} : { 'Idempotency-Key': key };
    const response = await senderFor(env)(method, target, json, headers);
    printError(`HTTP ${response.status} ${response.headers.get('X-Request-Id') ?? ''}`);
    print(await response.text());
    return response.ok ? exitCodes.done : exitCodes.failed;
  },
};

/** `artseal demo` */
export const demo: Command = {
  usage: 'demo',
  summary: 'make the documented calls against a running sandbox',
  details: ['Files an artwork, reads its provenance, sells it in escrow, and shows the TRANSFER record.'],
  run: async (_, { env, print }) => {
    const sendSigned = senderFor(env);

    async function send(title: string, method: string, target: string, body?: object) {
      const json = body === undefined ? undefined : JSON.stringify(body);
      print(`\n# ${title}\n${method} ${target}${json === undefined ? '' : `\n${json}`}`);
      const response = await sendSigned(method, target, json);
      const answered = await response.text();
      print(`→ ${response.status} ${answered}`);
      if (!response.ok) throw new Error(`${title} failed.`);
      return JSON.parse(answered);
    }

    const { filingNo } = await send('Filing', 'POST', '/api/v1/filing', exampleArtwork);
    await send('Provenance', 'GET', `/api/v1/provenance/${filingNo}`);
    const { escrowId } = await send('Escrow', 'POST', '/api/v1/escrow', {
      filingNo,
      type: 'GUARANTEE',
      amount: exampleArtwork.price,
      buyerId: 'buyer-1',
      sellerId: 'seller-1',
    });
    await send('Release', 'POST', `/api/v1/escrow/${escrowId}/release`);
    await send('Provenance, with the TRANSFER record', 'GET', `/api/v1/provenance/${filingNo}`);
  },
};

/** How long a signed call may take, in milliseconds. A call that waits for events takes 30 seconds at most. */
const callTimeoutMs = 60_000;

/** How long the service may take to respond, in milliseconds. Its own checks take a second at most. */
const readyTimeoutMs = 3_000;

/** `artseal ready` */
export const ready: Command = {
  usage: 'ready',
  summary: 'check whether the service is ready, for health checks that run a command',
  details: [
    'Calls /readyz at ARTSEAL_URL, or at ARTSEAL_PUBLIC_ADDR. Exit code 1, with what fails, if the service is not ready or',
    'does not respond within 3 seconds.',
  ],
  run: async (_, { env, print }) => {
    const url = `${publicUrl(env)}/readyz`;
    // The certificate is made for the name that clients use, so it is not checked.
    const options = { signal: AbortSignal.timeout(readyTimeoutMs), rejectUnauthorized: false };
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const get = url.startsWith('https:') ? getOverTls : getOverHttp;
    get(url, options, resolve).on('error', (cause) => {
      reject(new Error(`${url} does not respond`, { cause }));
    });
    const response = await promise;
    const body = await text(response);
    if (response.statusCode !== 200) throw new Error(`${url} returned ${response.statusCode}: ${body}`);
    print('ready');
  },
};

/** Reads a request target that is signed and sent as it is. Throws UsageError. */
function readTarget(word: string): string {
  if (!word.startsWith('/') || word.startsWith('//'))
    throw new UsageError(`needs a TARGET that begins with one /, such as /api/v1/filing, not '${word}'`);
  const { pathname, search } = new URL(`http://service${word}`);
  // Clients would rewrite it while sending, and the signature would not match.
  if (pathname + search !== word)
    throw new UsageError(`needs the TARGET as clients send it: ${pathname}${search}, not '${word}'`);
  return word;
}

/** Reads the key and secret from the environment, or those of the sandbox from the data folder. Throws ConfigError. */
export function readCredentials(env: NodeJS.ProcessEnv): ApiCredentials {
  const apiKey = env[clientVariables.apiKey];
  const apiSecret = env[clientVariables.apiSecret];
  if (apiKey && apiSecret) return { apiKey, apiSecret };
  const [set, missing] = apiKey
    ? [clientVariables.apiKey, clientVariables.apiSecret]
    : [clientVariables.apiSecret, clientVariables.apiKey];
  if (apiKey || apiSecret) throw new ConfigError([`${missing} is required if ${set} is set.`]);
  const dataDir = textOf(env, settings.dataDir);
  const sandbox = readSandboxCredentials(dataDir);
  if (sandbox !== undefined) return sandbox;
  const pair = `${clientVariables.apiKey} and ${clientVariables.apiSecret}`;
  throw new ConfigError([`${pair} are required: ${sandboxCredentialsFile(dataDir)} does not exist.`]);
}

/** Returns a `send` by the environment. Throws ConfigError with all faults; it rejects with advice if the connection fails. */
export function senderFor(env: NodeJS.ProcessEnv): RestClient['send'] {
  const { url, credentials } = readAll({
    url: () => publicUrl(env),
    credentials: () => readCredentials(env),
  });
  const client = createRestClient(url, credentials);
  return async (method, target, body, headers) => {
    try {
      return await client.send(method, target, body, headers, AbortSignal.timeout(callTimeoutMs));
    } catch (error) {
      if (error instanceof DOMException && error.name === 'TimeoutError')
        throw new Error(`${url} does not respond within ${callTimeoutMs / 1_000} s: see ${hangsPage}`);
      // This is how fetch reports a failed connection.
      if (!(error instanceof TypeError && error.message === 'fetch failed')) throw error;
      throw new Error(failureAt(url, reasonOf(error.cause)));
    }
  };
}

/** The origin of the public API. Throws ConfigError. */
function publicUrl(env: NodeJS.ProcessEnv): string {
  const given = env[clientVariables.url];
  if (!given) return readPublicUrl(env);
  const url = URL.parse(given);
  if (url !== null && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`) return url.origin;
  // The message does not repeat the value, which may hold a password.
  const rule = 'must be an http or https URL without path and password, such as http://127.0.0.1:8080';
  throw new ConfigError([`${clientVariables.url} ${rule}.`]);
}

/** Says why a connection failed, and what to do. */
function failureAt(url: string, reason: string): string {
  if (reason === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return `the certificate at ${url} is for another name: set ${clientVariables.url} to https:// and a name in the certificate`;
  if (untrusted.has(reason))
    return `the certificate at ${url} is not trusted (${reason}): set NODE_EXTRA_CA_CERTS to a PEM file of its authority`;
  return `${url} does not respond (${reason}): start it with artseal serve, or set ${clientVariables.url} to the URL of the service`;
}

/** Codes of OpenSSL for an unknown certificate authority. */
const untrusted: ReadonlySet<string> = new Set([
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
]);

/** The code of the system or of TLS; without one, the message of fetch. */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  return 'code' in cause ? String(cause.code) : cause.message;
}
