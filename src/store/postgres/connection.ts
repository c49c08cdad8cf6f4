import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { Socket } from 'node:net';
import { createSecureContext, type SecureContext } from 'node:tls';
import pg from 'pg';
import { refuseChangeableByOthers } from '../../lib/file-access.ts';
import { errorText } from '../../lib/file-errors.ts';
import { DatabaseError } from '../engine/failure.ts';
import type { PostgresPlace } from '../store.ts';
import { type Address, type Host, parseUrl } from './address.ts';
import { codeOf } from './postgres-errors.ts';
import { types } from './statement.ts';

/** How a connection is used. */
export interface ConnectionUse {
  /** Statements may take hours, as those of an upgrade do. */
  readonly isMaintenance: boolean;
}

/** The time that a host has until its session can be used. It is short, because the first of two hosts may have vanished. */
const hostTimeoutMs = 5_000;
/** A peer that is gone is found after this and ten probes, one a second. */
const keepAliveMs = 10_000;
/** No statement of a service takes seconds. One that does holds its locks and old rows, which stops the other instances. */
const statementTimeoutMs = 30_000;
/** A transaction of a process that was stopped keeps old rows from being removed. The pauses of a process that works are shorter. */
export const idleInTransactionTimeoutMs = 10_000;
/**
 * A query without a reply for so long has lost its connection: the server would have ended it. Keepalive finds no peer that vanished
 * while data is in flight.
 */
const silenceTimeoutMs = 2 * statementTimeoutMs;
const oldestServer = 15;

/**
 * Connects to the first host that takes writes. The client sends queries without waiting for earlier replies, and returns values as
 * `types` says. If its connection is lost, its queries reject and it emits `end`. Throws DatabaseError, and FilesExposed if other
 * users may change one of the files.
 */
export async function connect(
  place: PostgresPlace,
  { isMaintenance }: ConnectionUse = { isMaintenance: false },
): Promise<pg.Client> {
  const address = parseUrl(place.url);
  const { passwordFile, caFile, certificateFile, keyFile } = place;
  const files = [passwordFile, caFile, certificateFile, keyFile].filter((file) => file !== undefined);
  refuseChangeableByOthers(files);
  const isEncrypted = address.hosts.some(({ usesTls }) => usesTls);
  const secureContext = isEncrypted ? readTlsFiles(place) : undefined;
  const faults: string[] = [];
  for (const host of address.hosts) {
    try {
      return await connectTo(host, { address, passwordFile, secureContext, isMaintenance });
    } catch (error) {
      faults.push(error instanceof DatabaseError ? error.message : faultOf(error, host, address));
      // Another host would take this user no better, and may lock the user out.
      if (error instanceof NoPassword || codeOf(error).startsWith('28')) break;
    }
  }
  throw new DatabaseError(`cannot connect to the database: ${faults.join('; ')}.`);
}

/** What all hosts share. */
interface Session extends ConnectionUse {
  readonly address: Address;
  readonly passwordFile: string | undefined;
  readonly secureContext: SecureContext | undefined;
}

/** The server asks for a password and there is none, or its file cannot be used. */
class NoPassword extends DatabaseError {}

async function connectTo(host: Host, session: Session): Promise<pg.Client> {
  const socket = new Socket();
  const { user, database } = session.address;
  const client = new pg.Client({
    ...{ host: host.host, port: host.port, user, database, types },
    // Each of these keeps pg from a variable such as PGPASSWORD, and the function from ~/.pgpass as well.
    ...{ password: () => readPassword(host, session), options: ' ', sslnegotiation: 'postgres' },
    application_name: 'artseal',
    ssl: host.usesTls && { secureContext: session.secureContext, rejectUnauthorized: true },
    stream: () => socket,
    pipeline: true,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveMs,
    query_timeout: session.isMaintenance ? undefined : silenceTimeoutMs,
  });
  // Without a listener, the loss of an idle connection would end the process.
  client.on('error', () => {});
  const timeout = Object.assign(new Error('timeout'), { code: 'ETIMEDOUT' });
  const timer = setTimeout(() => socket.destroy(timeout), hostTimeoutMs);
  try {
    await client.connect();
    await refuseOtherServers(client, placeOf(host));
    await client.query(settingsFor(session));
    return client;
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * What the statements rely on, whatever role and database have set. Whether commits are synchronous stays as the server has it. The
 * statements of a service find few rows by an index. PostgreSQL, which plans once for a session, would read whole tables instead if
 * these were small at that time.
 */
function settingsFor({ isMaintenance }: ConnectionUse): string {
  const wholeTables = isMaintenance ? 'on' : 'off';
  return `SET standard_conforming_strings = on;
    SET bytea_output = 'hex';
    SET timezone = 'UTC';
    SET search_path = public;
    SET default_transaction_isolation = 'read committed';
    SET enable_seqscan = ${wholeTables};
    SET enable_hashjoin = ${wholeTables};
    SET enable_mergejoin = ${wholeTables};
    SET jit = off;
    SET statement_timeout = ${isMaintenance ? 0 : statementTimeoutMs};
    SET idle_in_transaction_session_timeout = ${isMaintenance ? 0 : idleInTransactionTimeoutMs}`;
}

async function refuseOtherServers(client: pg.Client, at: string): Promise<void> {
  const identity = await client.query<{ readonly version: string; readonly number: string }>(
    `SELECT pg_catalog.version() AS version, pg_catalog.current_setting('server_version_num') AS number`,
  );
  const { version = '', number = '' } = identity.rows[0] ?? {};
  // Both claim to be compatible. Neither has what the store relies on: advisory locks, and triggers that keep the evidence.
  if (!version.startsWith('PostgreSQL ') || version.includes('-YB-'))
    throw new DatabaseError(
      `${at} is not PostgreSQL but ${version.split(' ')[0]}: name a server of PostgreSQL`,
    );
  if (Math.floor(Number(number) / 10_000) < oldestServer)
    throw new DatabaseError(
      `${at} is ${version.split(' ', 2).join(' ')}: upgrade it to ${oldestServer} or later`,
    );
  const state = await client.query<{ isStandby: boolean; isReadOnly: boolean; encoding: string }>(
    `SELECT pg_catalog.pg_is_in_recovery() AS "isStandby",
      pg_catalog.current_setting('transaction_read_only')::bool AS "isReadOnly",
      pg_catalog.current_setting('server_encoding') AS encoding`,
  );
  const { isStandby = true, isReadOnly = true, encoding } = state.rows[0] ?? {};
  if (isStandby) throw new DatabaseError(`${at} is a standby: name the primary`);
  if (isReadOnly) throw new DatabaseError(`${at} takes no writes: set default_transaction_read_only = off`);
  if (encoding !== 'UTF8')
    throw new DatabaseError(
      `the database at ${at} has the encoding ${encoding}: create it with ENCODING 'UTF8' TEMPLATE template0`,
    );
}

/** What is lost at a crash while the setting is off. */
const losses: Readonly<Record<string, string>> = {
  fsync: 'a crash of the machine would damage the database',
  full_page_writes: 'a crash of the machine would damage the database',
  synchronous_commit: 'a crash would lose what was reported as stored',
};

/** Refuses a server that would lose what was committed. Throws DatabaseError. */
export async function refuseUnsafe(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ readonly name: string }>(
    `SELECT name FROM pg_catalog.pg_settings WHERE name = ANY ($1) AND setting = 'off' ORDER BY name`,
    [Object.keys(losses)],
  );
  if (rows.length === 0) return;
  const faults = rows.map(({ name }) => `${name} is off, so that ${losses[name]}: set ${name} = on`);
  throw new DatabaseError(`PostgreSQL is not safe to use: ${faults.join('; ')}.`);
}

function readPassword(host: Host, { address, passwordFile }: Session): string {
  const at = placeOf(host);
  if (passwordFile === undefined)
    throw new NoPassword(
      `${at} asks for the password of ${address.user}, and there is no password file: name one`,
    );
  try {
    const password = readText(passwordFile).replace(/\r?\n$/, '');
    if (password === '') throw new Error(`${passwordFile} is empty: write the password into it`);
    return password;
  } catch (error) {
    throw new NoPassword(`the password file cannot be used: ${errorText(error)}`);
  }
}

function readTlsFiles({ caFile, certificateFile, keyFile }: PostgresPlace): SecureContext {
  const read = (file: string | undefined) => (file === undefined ? undefined : readText(file));
  try {
    const [ca, cert, key] = [read(caFile), read(certificateFile), read(keyFile)];
    // OpenSSL takes a file without a certificate for an empty list.
    if (ca !== undefined && !isCertificate(ca)) throw new Error(`${caFile} contains no certificate`);
    return createSecureContext({ ca, cert, key });
  } catch (error) {
    throw new DatabaseError(`the TLS files for the database cannot be used: ${errorText(error)}.`);
  }
}

function isCertificate(text: string): boolean {
  try {
    return new X509Certificate(text) !== undefined;
  } catch {
    return false;
  }
}

function readText(file: string): string {
  // Reading a pipe could block forever.
  if (!statSync(file).isFile()) throw new Error(`${file} is not an ordinary file`);
  return readFileSync(file, 'utf8');
}

const placeOf = ({ host, port }: Host): string => `${host.includes(':') ? `[${host}]` : host}:${port}`;

/** What an error of a connection means, and what to do. */
type Explain = (at: string, address: Address, host: Host, message: string) => string;

const notTrusted: Explain = (at) =>
  `the certificate of ${at} is not signed by an authority that is trusted: name its authority in the CA file`;
const notReached: Explain = (at) => `${at} cannot be reached: check the network`;
const notFound: Explain = (_at, _address, { host }) =>
  `the host ${host} was not found: check its name, and the DNS`;
const closed: Explain = (at) => `${at} closed the connection: check that it is PostgreSQL, and read its log`;

/** By SQLSTATE, or by the code of Node.js. */
const explanations: Readonly<Record<string, Explain>> = {
  ENOTFOUND: notFound,
  EAI_AGAIN: notFound,
  ECONNREFUSED: (at) =>
    `${at} refused the connection: check that PostgreSQL runs, and its listen_addresses and port`,
  ENOENT: (_at, _address, { host, port }) =>
    `there is no socket in ${host} for port ${port}: check that PostgreSQL runs, and its unix_socket_directories`,
  EACCES: (at) =>
    `this user may not use the socket at ${at}: change its mode, or run artseal as another user`,
  ETIMEDOUT: (at) => `${at} did not answer in ${hostTimeoutMs / 1000} s: check its address, and the firewall`,
  EHOSTUNREACH: notReached,
  ENETUNREACH: notReached,
  ECONNRESET: closed,
  EPIPE: closed,
  UNABLE_TO_GET_ISSUER_CERT: notTrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: notTrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: notTrusted,
  SELF_SIGNED_CERT_IN_CHAIN: notTrusted,
  DEPTH_ZERO_SELF_SIGNED_CERT: notTrusted,
  ERR_TLS_CERT_ALTNAME_INVALID: (at) =>
    `the certificate of ${at} does not contain this name: use a name that it contains, or renew it`,
  CERT_HAS_EXPIRED: (at) => `the certificate of ${at} has expired: renew it`,
  CERT_NOT_YET_VALID: (at) => `the certificate of ${at} is not valid yet: check the clocks`,
  '28P01': (at, { user }) =>
    `${at} did not accept the password of ${user}: check the password file, and that this role exists`,
  '28000': (at, { user, database }, _host, message) =>
    `${at} does not let ${user} connect to ${database} (${message}): check the role, and pg_hba.conf`,
  '3D000': (at, { user, database }) =>
    `${at} has no database ${database}: CREATE DATABASE "${database}" OWNER "${user}"`,
  '42501': (at, { user, database }) =>
    `${at} does not let ${user} connect to ${database}: GRANT CONNECT ON DATABASE "${database}" TO "${user}"`,
  '53300': (at, _address, _host, message) =>
    `${at} has no connection left (${message}): raise max_connections, or the limit of the role or database`,
  '57P03': (at, _address, _host, message) =>
    `${at} accepts no connections at present (${message}): wait, or read its log`,
};

/** By the message of pg, whose errors have no code. */
const explanationsOfPg: Readonly<Record<string, Explain>> = {
  'The server does not support SSL connections': (at) => `${at} does not offer TLS: set ssl = on there`,
  'There was an error establishing an SSL connection': closed,
  'Connection terminated unexpectedly': closed,
};

function faultOf(error: unknown, host: Host, address: Address): string {
  const { message } = error instanceof Error ? error : new Error(String(error));
  const explain = explanations[codeOf(error)] ?? explanationsOfPg[message];
  return explain?.(placeOf(host), address, host, message) ?? `${placeOf(host)} failed: ${message}`;
}
