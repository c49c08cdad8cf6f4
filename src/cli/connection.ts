import { readFileSync } from 'node:fs';
import { connect as connectSocket } from 'node:net';
import { userInfo } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import type { DescService } from '@bufbuild/protobuf';
import {
  type CallOptions,
  type Client,
  Code,
  ConnectError,
  createClient,
  type Interceptor,
  type Transport,
} from '@connectrpc/connect';
import { createConnectTransport, Http2SessionManager } from '@connectrpc/connect-node';
import { BadRequestSchema, ErrorInfoSchema } from '../../gen/google/rpc/error_details_pb.ts';
import { actorOf, localPrincipal, userHeader } from '../api/operation.ts';
import { type ClientTls, http2Target } from '../client/typed.ts';
import { clientVariables, readConfig, readDataDir } from '../config/config.ts';
import { isSecure } from '../domain/address.ts';
import { type Actor, checkReason } from '../domain/audit-entry.ts';
import { ApiError, type Reason, reasons } from '../domain/reason.ts';
import { rejectViolations, ValidationError } from '../domain/violation.ts';
import { openAdminSocket } from '../http/listen/address.ts';
import { refuseChangeableByOthers } from '../lib/file-access.ts';
import { shownName } from '../lib/strict-json.ts';
import type { RegistryOptions } from '../operations/registry.ts';
import { buildInfo } from '../packaging/build-info.ts';
import { FolderInUse } from '../store/sqlite/folder-lock.ts';
import { hangsPage, UsageError } from './command.ts';

/**
 * How long a command waits until a server that starts or stops, or another command, has finished, in milliseconds. A server that
 * stops waits 10 seconds for its calls.
 */
const folderTimeoutMs = 15_000;
/** How soon it tries again, in milliseconds. */
const retryMs = 50;
/** How long a call may take, in milliseconds. Streams have no limit. */
const callTimeoutMs = 30_000;
/** How often a call asks the server whether it is still there, in milliseconds. */
const pingIntervalMs = 10_000;
/** How long a connection may be idle before it closes, in milliseconds. An idle one does not keep the process alive. */
const idleConnectionTimeoutMs = 100;

/** A connection to the services. */
export interface Connection {
  readonly transport: Transport;
  /** Who answers, for messages. */
  readonly server: string;
  close(): Promise<void>;
}

/** Options that few commands need. */
export type ConnectionOptions = Pick<RegistryOptions, 'isMasterKeyLost'>;

/**
 * Connects to the server at `url`; without one, to the server of the data folder, or to the services in this process if none
 * runs. Throws UsageError, FolderInUse, and what opening the folder throws.
 */
export async function connect(
  url: string | undefined,
  env: NodeJS.ProcessEnv,
  options: ConnectionOptions = {},
): Promise<Connection> {
  const untilMs = performance.now() + folderTimeoutMs;
  for (;;) {
    const served = await findServer(url, env);
    if (served !== undefined) return served;
    try {
      return await openFolder(env, options);
    } catch (error) {
      if (!(error instanceof FolderInUse)) throw error;
      if (performance.now() < untilMs) await wait(retryMs);
      else
        throw new Error(`${readDataDir(env)} is in use, and its server does not respond: see ${hangsPage}.`);
    }
  }
}

/**
 * Connects to the server at `url`; without one, to the server of the data folder, or undefined if none runs. Throws UsageError.
 */
export async function findServer(
  url: string | undefined,
  env: NodeJS.ProcessEnv,
): Promise<Connection | undefined> {
  return url === undefined ? connectToServer(readDataDir(env), env) : connectRemote(url, env);
}

/** The services of the data folder in this process. */
async function openFolder(env: NodeJS.ProcessEnv, options: ConnectionOptions): Promise<Connection> {
  const config = readConfig(env);
  const { openInProcess } = await import('../app/in-process.ts');
  const { transport, close } = await openInProcess(config, options, [asUser(env)]);
  return { transport, server: config.dataDir, close };
}

/** Connects to the admin socket; undefined if no process listens there. Throws FilesExposed. */
async function connectToServer(dataDir: string, env: NodeJS.ProcessEnv): Promise<Connection | undefined> {
  using opened = new DisposableStack();
  const { path } = opened.use(openAdminSocket(dataDir));
  if (!(await hasListener(path))) return undefined;
  // A user who may change the folder could listen there in place of the server.
  refuseChangeableByOthers([dataDir]);
  const socket = opened.move();
  return {
    transport: openHttp2(http2Target(`unix:${path}`), [asUser(env)]),
    server: `the server of ${dataDir}`,
    close: async () => socket.dispose(),
  };
}

function openHttp2(
  { baseUrl, nodeOptions }: ReturnType<typeof http2Target>,
  identify: readonly Interceptor[],
): Transport {
  // A server that hangs answers no ping, which ends its streams. The session then emits its error a little later, and would have no
  // listener for it any more if it were aborted here: it closes when it is idle.
  const times = { pingIntervalMs, idleConnectionTimeoutMs };
  const sessionManager = new Http2SessionManager(baseUrl, times, nodeOptions);
  const interceptors = [...identify];
  const defaultTimeoutMs = callTimeoutMs;
  return createConnectTransport({
    httpVersion: '2',
    baseUrl,
    sessionManager,
    interceptors,
    defaultTimeoutMs,
  });
}

function hasListener(path: string): Promise<boolean> {
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  const socket = connectSocket({ path });
  socket.once('connect', () => resolve(true));
  socket.once('error', (error: NodeJS.ErrnoException) =>
    ['ENOENT', 'ENOTDIR', 'ECONNREFUSED'].includes(error.code ?? '')
      ? resolve(false)
      : reject(Object.assign(error, { path })),
  );
  return promise.finally(() => socket.destroy());
}

/** Connects to a server with the token of the environment. Throws UsageError. */
export function connectRemote(url: string, env: NodeJS.ProcessEnv): Connection {
  if (!isServerUrl(url))
    throw new UsageError(
      `takes --url https://HOST:PORT, unix:/PATH, or http:// on this machine, without a path, not '${url}'`,
    );
  const token = env[clientVariables.token]?.trim();
  if (!token) throw new UsageError(`needs a token in ${clientVariables.token} with --url`);
  // Otherwise an error of the library would show it.
  if (!/^[\x21-\x7e]+$/.test(token))
    throw new UsageError(`needs a token without spaces and line ends in ${clientVariables.token}`);
  const { ca, certificate, key } = clientVariables;
  const files = { ca: env[ca], cert: env[certificate], key: env[key] };
  const tls: ClientTls = Object.fromEntries(
    Object.entries(files).flatMap(([name, file]) => (file ? [[name, readFileSync(file)]] : [])),
  );
  const authorize = withHeader('Authorization', `Bearer ${token}`);
  // The admin socket of another folder ignores the token.
  const identify = url.startsWith('unix:') ? [authorize, asUser(env)] : [authorize];
  return { transport: openHttp2(http2Target(url, tls), identify), server: url, close: async () => {} };
}

/** Whether a token may be sent to a URL: over plain HTTP only on this machine. */
function isServerUrl(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || url.protocol === 'unix:') return /^unix:\/./.test(text);
  return isSecure(url) && url.href === `${url.origin}/`;
}

/** Names the user of this command, for the audit log. */
const asUser = (env: NodeJS.ProcessEnv): Interceptor =>
  withHeader(userHeader, encodeURIComponent(userName(env)));

function withHeader(name: string, value: string): Interceptor {
  return (next) => (request) => {
    request.header.set(name, value);
    return next(request);
  };
}

/** The user who runs this process, or who called sudo or artseal-admin according to the environment. */
export function userName({ SUDO_USER }: NodeJS.ProcessEnv): string {
  if (SUDO_USER) return SUDO_USER;
  try {
    return userInfo().username;
  } catch {
    // In a container a user may have no name.
    return String(process.getuid?.() ?? 'unknown');
  }
}

/** The user of `userName` as the audit log names them, for a change that is made without a call. Throws VALIDATION_FAILED. */
export function localActor(env: NodeJS.ProcessEnv, reason: string | undefined): Actor {
  rejectViolations(checkReason(reason ?? ''));
  const principal = localPrincipal(shownName(userName(env)));
  return actorOf({ principal }, { nowMs: () => Date.now() }, reason);
}

/**
 * A client that connects at its first call. Its calls throw the errors of the service: ApiError with its reason, or an Error that
 * says who does not respond.
 */
export function clientOf<S extends DescService>(service: S, connect: () => Promise<Connection>): Client<S> {
  async function call(name: string, args: readonly unknown[]) {
    const { transport, server } = await connect();
    const client = createClient(service, transport) as Record<string, (...args: unknown[]) => unknown>;
    return { response: client[name]?.(...args), server };
  }
  async function unary(name: string, args: readonly unknown[]) {
    const { response, server } = await call(name, args);
    return Promise.resolve(response).catch((error) => Promise.reject(explain(error, server)));
  }
  async function* stream(name: string, [request, options]: readonly unknown[]) {
    const { response, server } = await call(name, [request, { timeoutMs: 0, ...(options as CallOptions) }]);
    try {
      yield* response as AsyncIterable<unknown>;
    } catch (error) {
      throw explain(error, server);
    }
  }
  const methods = service.methods.map(({ localName, methodKind }) => {
    const run = methodKind === 'unary' ? unary : stream;
    return [localName, (...args: unknown[]) => run(localName, args)] as const;
  });
  return Object.fromEntries(methods) as Client<S>;
}

function explain(thrown: unknown, server: string): Error {
  const error = ConnectError.from(thrown);
  const [info] = error.findDetails(ErrorInfoSchema);
  // A network error has a cause, which says enough, unless the connection broke: then the call may have been carried out.
  const { code } = (error.cause ?? {}) as NodeJS.ErrnoException;
  const advice = error.cause === undefined || code === 'ECONNRESET' ? `: see ${hangsPage}` : '';
  if (info === undefined && ['ERR_HTTP2_ERROR', 'ERR_SSL_WRONG_VERSION_NUMBER'].includes(code ?? ''))
    return new Error(
      `${server} is not an internal API: check the port, and that the URL begins with https:// only if it has TLS (${code})`,
    );
  if (info === undefined) return new Error(`${server} does not respond (${error.rawMessage})${advice}`);
  if (error.code === Code.Unimplemented)
    return new Error(`${server} does not know this command: its version is not ${buildInfo.version}`);
  // A newer server may have other reasons.
  if (!Object.hasOwn(reasons, info.reason)) return new Error(`${info.reason}: ${error.rawMessage}`);
  const reason = info.reason as Reason;
  const [invalid] = error.findDetails(BadRequestSchema);
  if (invalid === undefined) return new ApiError(reason, error.rawMessage);
  const violations = invalid.fieldViolations.map(({ field, description: rule }) => ({
    field: jsonName(field),
    rule,
  }));
  const more = Number(/; and (\d+) more$/.exec(error.rawMessage)?.[1] ?? 0);
  return new ValidationError(reason, violations, error.rawMessage, more);
}

/** The name of a field in JSON: `keyId` of `key_id`. */
function jsonName(path: string): string {
  const [first = '', ...rest] = path.split('.');
  return [first.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()), ...rest].join('.');
}
