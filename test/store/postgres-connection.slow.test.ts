import assert from 'node:assert/strict';
import { once } from 'node:events';
import { appendFileSync, chmodSync, chownSync, copyFileSync, statSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type pg from 'pg';
import { FilesExposed } from '../../src/lib/file-access.ts';
import { DatabaseError } from '../../src/store/engine/failure.ts';
import { parseUrl } from '../../src/store/postgres/address.ts';
import { connect, refuseUnsafe } from '../../src/store/postgres/connection.ts';
import { isMachineFault } from '../../src/store/postgres/postgres-errors.ts';
import type { PostgresPlace } from '../../src/store/store.ts';
import { type Certificate, makeAuthority, trust } from '../support/certificates.ts';
import { eventually } from '../support/eventually.ts';
import { fileScope } from '../support/file-scope.ts';
import { freeAddress } from '../support/free-address.ts';
import {
  type ClusterOptions,
  openCluster,
  postgresCluster,
  skipUnlessPostgres,
} from '../support/postgres.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const skip = skipUnlessPostgres();

const password = 'correct horse';

/** A server of its own, which listens on TCP and asks for passwords. */
interface Server {
  /** The folder of its Unix socket, and that of its data. */
  readonly folder: string;
  readonly data: string;
  /** 127.0.0.1:port. */
  readonly address: string;
  readonly port: number;
  /** The URL of its Unix socket for a user. */
  socketUrl(user: string, database?: string): string;
  stop(): Promise<void>;
}

/** Who is admitted how. */
const admissions = `
local all         postgres               trust
local replication postgres               trust
local all         writer                 scram-sha-256
local all         stranger               peer
host  all         postgres  127.0.0.1/32 trust
host  all         writer    127.0.0.1/32 scram-sha-256
`;

/** Runs a server until the tests of `t` are over, on new data or on those that a program makes. */
async function startServer(t: Pick<TestContext, 'after'>, made?: ClusterOptions['made']): Promise<Server> {
  const address = await freeAddress();
  const port = Number(address.split(':')[1]);
  const settings = { listen_addresses: '127.0.0.1', port: String(port) };
  const cluster = await openCluster({ fsync: true, settings, ...(made && { made }) });
  t.after(() => cluster.remove());
  const socketUrl = (user: string, database = 'postgres') =>
    `postgres://${user}@/${database}?host=${cluster.folder}&port=${port}`;
  const data = join(cluster.folder, 'data');
  return { folder: cluster.folder, data, address, port, socketUrl, stop: cluster.kill };
}

let primary: Promise<Server> | undefined;
fileScope.after(async () => (await primary)?.stop());

/** The server of the tests of this file. */
function primaryServer(): Promise<Server> {
  primary ??= startServer({ after: () => {} }).then(async (server) => {
    await asSuperuser(
      server,
      `CREATE ROLE writer LOGIN PASSWORD '${password}'`,
      'CREATE ROLE certified LOGIN',
      'CREATE ROLE stranger LOGIN',
    );
    writeFileSync(join(server.data, 'pg_hba.conf'), admissions);
    await reload(server, 'ssl', 'off');
    return server;
  });
  return primary;
}

async function asSuperuser(server: Server, ...statements: readonly string[]): Promise<void> {
  const client = await connect({ url: server.socketUrl('postgres') });
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

/** Gives the server a certificate, and waits until it uses it. */
async function useCertificate(
  server: Server,
  certificate: Certificate,
  authority: Certificate,
): Promise<void> {
  const { uid, gid } = statSync(server.data);
  const own = {
    'server.crt': certificate.certificateFile,
    'server.key': certificate.keyFile,
    'root.crt': authority.certificateFile,
  };
  for (const [name, from] of Object.entries(own)) {
    const file = join(server.data, name);
    copyFileSync(from, file);
    chownSync(file, uid, gid);
    chmodSync(file, 0o600);
  }
  await reload(server, 'ssl_ca_file', 'root.crt');
  await reload(server, 'ssl', 'on');
}

const withoutTls = 'this PostgreSQL was built without TLS';

async function hasTls(server: Server): Promise<boolean> {
  const client = await connect({ url: server.socketUrl('postgres') });
  const { rows } = await client.query<{ readonly ssl_library: string }>('SHOW ssl_library');
  await client.end();
  return rows[0]?.ssl_library !== '';
}

/** Changes a setting of the server, and waits until new sessions have it. */
async function reload(server: Server, name: string, value: string): Promise<void> {
  // So that a change of a file alone is seen as well.
  const mark = `mark-${Math.random()}`;
  await asSuperuser(
    server,
    `ALTER SYSTEM SET ${name} = '${value}'`,
    `ALTER SYSTEM SET cluster_name = '${mark}'`,
  );
  await asSuperuser(server, `ALTER SYSTEM SET log_line_prefix = '${mark}'`, 'SELECT pg_reload_conf()');
  await eventually('the settings are reloaded', 5_000, async () => {
    const client = await connect({ url: server.socketUrl('postgres') });
    const { rows } = await client.query<{ log_line_prefix: string }>('SHOW log_line_prefix');
    await client.end();
    return rows[0]?.log_line_prefix === mark;
  });
}

/** A file with a text, which no other user may change. */
function fileWith(t: TestContext, text: string): string {
  const file = join(temporaryFolder(t), 'secret');
  writeFileSync(file, text, { mode: 0o600 });
  return file;
}

/** Connects until the end of the test. */
async function open(t: TestContext, place: PostgresPlace): Promise<pg.Client> {
  const client = await connect(place);
  t.after(() => client.end());
  return client;
}

/** The one row of a query. */
async function rowOf(client: pg.Client, text: string): Promise<unknown> {
  const { rows } = await client.query<Record<string, unknown>>(text);
  assert.equal(rows.length, 1);
  return rows[0];
}

/** Asserts that connecting is refused with a message that matches, and that no secret is in it. */
async function assertRefused(place: PostgresPlace, ...patterns: readonly RegExp[]): Promise<void> {
  await assert.rejects(connect(place), (error) => {
    assert.ok(error instanceof DatabaseError, String(error));
    for (const pattern of patterns) assert.match(error.message, pattern);
    assert.match(error.message, /\.$/);
    assert.doesNotMatch(error.message, /correct horse|hunter2/);
    return true;
  });
}

test('a URL that is wrong or unsafe is refused, and not repeated', async () => {
  const refusals: readonly (readonly [url: string, pattern: RegExp])[] = [
    ['postgres://writer:hunter2@db/artseal', /contains a password/],
    ['postgres://writer:hunter2@/artseal?host=/run', /contains a password/],
    ['postgres://writer:hun/ter2@db/artseal?x=hunter2', /contains a password/],
    ['postgres://writer@db/artseal?password=hunter2', /contains a password/],
    ['postgres://writer@db/artseal?p%61ssword=hunter2', /contains a password/],
    ['mysql://db/artseal?hunter2', /is not the URL of a database/],
    ['hunter2', /is not the URL of a database/],
    ['postgres://db/artseal', /must name a user and a database/],
    ['postgres://writer@db', /must name a user and a database/],
    ['postgres://writer@db/', /must name a user and a database/],
    ['postgres://writer@/artseal', /must name a host/],
    ['postgres://writer@db1,,db2/artseal', /must name a host/],
    ['postgres://writer@db:99999/artseal', /port that is not a number/],
    ['postgres://writer@db/artseal?host=/run', /names hosts twice/],
    ['postgres://writer@db/artseal?options=-cfsync', /unknown parameter options/],
    ['postgres://writer@db/artseal?sslmode=require', /neither verify-full nor disable/],
    [
      'postgres://writer@db/artseal?sslmode=disable',
      /must have sslmode=verify-full, since db is another machine/,
    ],
    ['postgres://writer@localhost,10.0.0.1/artseal?sslmode=disable', /10\.0\.0\.1 is another machine/],
    ['postgres://wri%ter@db/artseal', /encode it as %25/],
  ];
  for (const [url, pattern] of refusals) await assertRefused({ url }, pattern);
});

test('a URL names hosts in their order, and TLS is used unless a host is this machine', () => {
  const hostsOf = (url: string) =>
    parseUrl(url).hosts.map(({ host, port, usesTls }) => [host, port, usesTls]);
  assert.deepEqual(parseUrl('postgresql://wr%40iter@db/art%2Fseal'), {
    user: 'wr@iter',
    database: 'art/seal',
    hosts: [{ host: 'db', port: 5432, usesTls: true }],
  });
  assert.deepEqual(
    hostsOf('postgres://a@db1,localhost:5433,[2001:db8::1]:1,10.0.0.1/b?sslmode=verify-full'),
    [
      ['db1', 5432, true],
      ['localhost', 5433, true],
      ['2001:db8::1', 1, true],
      ['10.0.0.1', 5432, true],
    ],
  );
  assert.deepEqual(hostsOf('postgres://a@localhost,127.0.0.2,[::1],localhost.example/b'), [
    ['localhost', 5432, false],
    ['127.0.0.2', 5432, false],
    ['::1', 5432, false],
    ['localhost.example', 5432, true],
  ]);
  assert.deepEqual(hostsOf('postgres://a@/b?host=db1,::1,/run/pg&port=7'), [
    ['db1', 7, true],
    ['::1', 7, false],
    ['/run/pg', 7, false],
  ]);
});

test('a session has the settings that the statements rely on, whatever role and database have set', {
  skip,
}, async (t) => {
  const server = await primaryServer();
  const own = `ALTER ROLE writer SET`;
  await asSuperuser(
    server,
    `${own} search_path = pg_temp`,
    `${own} timezone = 'Asia/Tokyo'`,
    `${own} bytea_output = 'escape'`,
  );
  await asSuperuser(
    server,
    `${own} default_transaction_isolation = 'serializable'`,
    `${own} client_encoding = 'LATIN1'`,
    `${own} standard_conforming_strings = off`,
  );
  t.after(() => asSuperuser(server, 'ALTER ROLE writer RESET ALL'));
  const passwordFile = fileWith(t, `${password}\n`);
  const settings = `SELECT current_setting('search_path') AS path, current_setting('timezone') AS zone,
    current_setting('bytea_output') AS bytes, current_setting('default_transaction_isolation') AS isolation,
    current_setting('client_encoding') AS encoding, current_setting('standard_conforming_strings') AS strings, current_setting('application_name') AS name,
    current_setting('statement_timeout') AS statement, current_setting('idle_in_transaction_session_timeout') AS idle`;
  const expected = {
    path: 'public',
    zone: 'UTC',
    bytes: 'hex',
    isolation: 'read committed',
    encoding: 'UTF8',
    strings: 'on',
    name: 'artseal',
  };
  const place = { url: server.socketUrl('writer'), passwordFile };
  const serving = await open(t, place);
  assert.deepEqual(await rowOf(serving, settings), { ...expected, statement: '30s', idle: '10s' });
  const maintenance = await connect(place, { isMaintenance: true });
  t.after(() => maintenance.end());
  assert.deepEqual(await rowOf(maintenance, settings), { ...expected, statement: '0', idle: '0' });
});

test('a service finds rows by an index, although the table was small when its statement was planned', {
  skip,
}, async (t) => {
  const server = await primaryServer();
  const client = await open(t, { url: server.socketUrl('writer'), passwordFile: fileWith(t, password) });
  await client.query(`CREATE TEMPORARY TABLE small AS SELECT generate_series(1, 100) AS id;
    CREATE UNIQUE INDEX small_by_id ON small (id);
    ANALYZE small;
    PREPARE find AS SELECT small.id FROM small JOIN unnest($1::integer[]) AS given (id) USING (id);
    SET plan_cache_mode = force_generic_plan`);
  const { rows } = await client.query<Record<string, string>>("EXPLAIN EXECUTE find('{1, 2}')");
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  assert.match(plan, /Index Only Scan using small_by_id/);
  assert.doesNotMatch(plan, /Seq Scan|Hash|Merge/);
});

test('a Unix socket is named as a parameter or in place of the host, and needs no TLS', {
  skip,
}, async (t) => {
  const { folder, port } = await primaryServer();
  for (const url of [
    `postgres://postgres@/postgres?host=${folder}&port=${port}`,
    `postgresql://postgres@/postgres?host=${encodeURIComponent(folder)}&port=${port}&sslmode=verify-full`,
    `postgres://postgres@${encodeURIComponent(folder)}:${port}/postgres`,
  ]) {
    const client = await open(t, { url });
    assert.deepEqual(await rowOf(client, 'SELECT inet_server_addr() AS address'), { address: null });
  }
  await assertRefused(
    { url: `postgres://postgres@/postgres?host=${folder}` },
    /no socket in .* for port 5432: .*unix_socket_directories/,
  );
});

test('the password is read from its file at each connection', { skip }, async (t) => {
  const server = await primaryServer();
  const passwordFile = fileWith(t, `${password}\r\n`);
  const place = { url: server.socketUrl('writer'), passwordFile };
  await open(t, place);
  writeFileSync(passwordFile, 'hunter2');
  await assertRefused(place, /did not accept the password of writer: check the password file/);
  await asSuperuser(server, `ALTER ROLE writer PASSWORD 'hunter2'`);
  t.after(() => asSuperuser(server, `ALTER ROLE writer PASSWORD '${password}'`));
  await open(t, place);
  await assertRefused(
    { ...place, passwordFile: undefined },
    /asks for the password of writer, and there is no password file/,
  );
  await assertRefused({ ...place, passwordFile: fileWith(t, '\n') }, /is empty: write the password into it/);
  await assertRefused({ ...place, passwordFile: '/nowhere/password' }, /\/nowhere\/password does not exist/);
  chmodSync(passwordFile, 0o666);
  await assert.rejects(connect(place), FilesExposed);
});

test('variables and files of other clients change nothing', { skip }, async (t) => {
  const server = await primaryServer();
  if (!(await hasTls(server))) return t.skip(withoutTls);
  const pgpass = fileWith(t, `*:*:*:*:${password}\n`);
  const variables = {
    PGPASSWORD: password,
    PGPASSFILE: pgpass,
    PGUSER: 'certified',
    PGDATABASE: 'nowhere',
    PGHOST: 'nowhere.invalid',
    PGPORT: '1',
    PGOPTIONS: '-c synchronous_commit=off',
    PGAPPNAME: 'other',
    PGSSLMODE: 'no-verify',
    PGSSLNEGOTIATION: 'direct',
    PGCLIENT_ENCODING: 'LATIN1',
    NODE_TLS_REJECT_UNAUTHORIZED: '0',
  };
  const before = { ...process.env };
  Object.assign(process.env, variables);
  t.after(() => {
    for (const name of Object.keys(variables)) {
      if (before[name] === undefined) delete process.env[name];
      else process.env[name] = before[name];
    }
  });
  await assertRefused({ url: server.socketUrl('writer') }, /no password file/);
  await useCertificate(server, makeAuthority(t).issue('server'), makeAuthority(t));
  await assertRefused(
    { url: `postgres://postgres@${server.address}/postgres?sslmode=verify-full` },
    /not signed by an authority/,
  );
  const client = await open(t, { url: server.socketUrl('postgres') });
  const settings = `SELECT current_setting('synchronous_commit') AS commits, current_setting('application_name') AS name`;
  assert.deepEqual(await rowOf(client, settings), { commits: 'on', name: 'artseal' });
});

test('roles and databases that are missing are named', { skip }, async (t) => {
  const server = await primaryServer();
  const passwordFile = fileWith(t, password);
  await assertRefused(
    { url: server.socketUrl('postgres', 'nowhere') },
    /has no database nowhere: CREATE DATABASE "nowhere" OWNER "postgres"/,
  );
  await assertRefused(
    { url: server.socketUrl('nobody') },
    /does not let nobody connect to postgres \(.*pg_hba/,
  );
  await assertRefused(
    { url: server.socketUrl('stranger') },
    /does not let stranger connect to postgres \(.*[Pp]eer/,
  );
  await asSuperuser(
    server,
    'ALTER ROLE writer CONNECTION LIMIT 0',
    'CREATE DATABASE closed',
    'REVOKE CONNECT ON DATABASE closed FROM PUBLIC',
  );
  const latin = `CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`;
  await asSuperuser(server, latin);
  await assertRefused(
    { url: server.socketUrl('writer'), passwordFile },
    /has no connection left \(.*the limit of the role/,
  );
  await asSuperuser(server, 'ALTER ROLE writer CONNECTION LIMIT -1');
  await assertRefused(
    { url: server.socketUrl('writer', 'closed'), passwordFile },
    /GRANT CONNECT ON DATABASE "closed" TO "writer"/,
  );
  await assertRefused({ url: server.socketUrl('postgres', 'latin') }, /has the encoding LATIN1/);
  await assertRefused(
    { url: (await postgresCluster()).url('postgres').replace('postgres@', 'missing@') },
    /does not let missing connect .*role "missing" does not exist/,
  );
});

test('the certificate of a server is verified, and one of the client is sent', { skip }, async (t) => {
  const server = await primaryServer();
  if (!(await hasTls(server))) return t.skip(withoutTls);
  // A server without TLS does not start with this line.
  appendFileSync(join(server.data, 'pg_hba.conf'), 'hostssl all certified 127.0.0.1/32 cert\n');
  const authority = makeAuthority(t);
  const other = makeAuthority(t);
  const caFile = authority.certificateFile;
  const url = (user = 'postgres', host = 'localhost') =>
    `postgres://${user}@${host}:${server.port}/postgres?sslmode=verify-full`;
  const usesTls = 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()';

  await reload(server, 'ssl', 'off');
  await assertRefused({ url: url(), caFile }, /localhost:\d+ does not offer TLS: set ssl = on/);
  await useCertificate(server, authority.issue('server', 2, ['localhost']), authority);
  assert.deepEqual(await rowOf(await open(t, { url: url(), caFile }), usesTls), { ssl: true });
  const plain = await open(t, { url: `postgres://postgres@${server.address}/postgres` });
  assert.deepEqual(await rowOf(plain, usesTls), { ssl: false });
  await assertRefused(
    { url: url() },
    /not signed by an authority that is trusted: name its authority in the CA file/,
  );
  await assertRefused(
    { url: url('postgres', '127.0.0.1'), caFile },
    /certificate of 127\.0\.0\.1:\d+ does not contain this name/,
  );
  await assertRefused({ url: url('certified'), caFile }, /does not let certified connect/);
  const { certificateFile, keyFile } = authority.issue('certified');
  await open(t, { url: url('certified'), caFile, certificateFile, keyFile });

  trust(t, authority);
  await open(t, { url: url() });
  // The file replaces the authorities that are trusted otherwise.
  await assertRefused({ url: url(), caFile: other.certificateFile }, /not signed by an authority/);
  await assertRefused({ url: url(), caFile: fileWith(t, 'text') }, /contains no certificate/);
  await assertRefused(
    { url: url(), caFile, certificateFile, keyFile: '/nowhere/key' },
    /\/nowhere\/key does not exist/,
  );
  await useCertificate(server, authority.issue('server', -1), authority);
  await assertRefused({ url: url(), caFile }, /certificate of localhost:\d+ has expired: renew it/);
});

test('of several hosts the first that takes writes is used', { skip }, async (t) => {
  const server = await primaryServer();
  const standby = await startServer(t, (data) => [
    ...(['pg_basebackup', '-D', data, '-h', server.folder, '-p', String(server.port)] as const),
    ...['-U', 'postgres', '-R', '-c', 'fast', '--no-sync'],
  ]);
  const nowhere = await freeAddress();
  const url = (...hosts: readonly string[]) => `postgres://postgres@${hosts.join(',')}/postgres`;
  const client = await open(t, { url: url(nowhere, standby.address, server.address) });
  assert.deepEqual(await rowOf(client, 'SELECT inet_server_port() AS port'), { port: server.port });
  await assertRefused({ url: url(standby.address) }, / is a standby: name the primary/);
  await assertRefused(
    { url: url(nowhere, standby.address) },
    new RegExp(`${nowhere} refused the connection.*; ${standby.address} is a standby`),
  );
  await asSuperuser(server, `ALTER ROLE writer SET default_transaction_read_only = on`);
  t.after(() => asSuperuser(server, `ALTER ROLE writer RESET ALL`));
  const passwordFile = fileWith(t, password);
  await assertRefused(
    { url: server.socketUrl('writer'), passwordFile },
    /takes no writes: set default_transaction_read_only = off/,
  );
  // A wrong password is not tried at the others.
  const tried = `postgres://writer@${server.address},${nowhere}/postgres`;
  await assertRefused(
    { url: tried, passwordFile: fileWith(t, 'hunter2') },
    /^[^;]*did not accept the password[^;]*$/,
  );
});

test('the message about a host that cannot be reached says why', { skip }, async (t) => {
  await assertRefused({ url: 'postgres://a@nowhere.invalid/b' }, /the host nowhere\.invalid was not found/);
  await assertRefused(
    { url: `postgres://a@${await freeAddress()}/b` },
    /refused the connection: check that PostgreSQL runs/,
  );
  const server = await startServer(t);
  const url = `postgres://postgres@${server.address}/postgres`;
  const client = await open(t, { url });
  const ended = new Promise((resolve) => client.once('end', resolve));
  await server.stop();
  await ended;
  await assert.rejects(client.query('SELECT 1'), isMachineFault);
  await assertRefused({ url }, /refused the connection/);
});

/** A server that does with a connection what `serve` does. Returns its address. */
async function standIn(t: TestContext, serve: (socket: Socket) => void): Promise<string> {
  const sockets: Socket[] = [];
  const listener = createServer((socket) => {
    sockets.push(socket.on('error', () => {}));
    serve(socket);
  }).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    listener.close();
  });
  return `127.0.0.1:${(listener.address() as AddressInfo).port}`;
}

test('a server that is not PostgreSQL is refused', async (t) => {
  const web = await standIn(t, (socket) =>
    socket.on('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')),
  );
  for (const mode of ['disable', 'verify-full'])
    await assertRefused(
      { url: `postgres://a@${web}/b?sslmode=${mode}` },
      /closed the connection: check that it is PostgreSQL/,
    );
});

/** A message of PostgreSQL's protocol. */
function message(type: string, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const header = Buffer.from(`${type}....`);
  header.writeInt32BE(content.length + 4, 1);
  return Buffer.concat([header, content]);
}

const int16 = (value: number) => Buffer.of(value >> 8, value & 0xff);
const int32 = (value: number) => Buffer.of(0, 0, value >> 8, value & 0xff);

/** Replies to each query with one row of text. */
function replyWith(row: Readonly<Record<string, string>>): (socket: Socket) => void {
  const names = Object.keys(row).map((name) =>
    Buffer.concat([Buffer.from(`${name}\0`), int32(0), int16(0), int32(25), int16(1), int32(0), int16(0)]),
  );
  const values = Object.values(row).flatMap((value) => [int32(value.length), Buffer.from(value)]);
  const ready = message('Z', Buffer.from('I'));
  const reply = [message('T', int16(names.length), ...names), message('D', int16(names.length), ...values)];
  return (socket) => {
    socket.once('data', () => {
      socket.write(Buffer.concat([message('R', int32(0)), ready]));
      socket.on('data', () =>
        socket.write(Buffer.concat([...reply, message('C', Buffer.from('SELECT 1\0')), ready])),
      );
    });
  };
}

test('other databases that speak the protocol, and old versions, are refused', async (t) => {
  const refusals: readonly (readonly [version: string, number: string, pattern: RegExp])[] = [
    ['CockroachDB CCL v25.1.0 (x86_64-pc-linux-gnu)', '130000', /is not PostgreSQL but CockroachDB/],
    ['PostgreSQL 15.12-YB-2025.1.0.0-b0 on x86_64-pc-linux-gnu', '150012', /is not PostgreSQL but/],
    ['PostgreSQL 14.17 on x86_64-pc-linux-gnu', '140017', /is PostgreSQL 14\.17: upgrade it to 15 or later/],
    ['PostgreSQL 9.6.24 on x86_64-pc-linux-gnu', '90624', /is PostgreSQL 9\.6\.24: upgrade it/],
  ];
  for (const [version, number, pattern] of refusals) {
    const address = await standIn(t, replyWith({ version, number }));
    await assertRefused({ url: `postgres://a@${address}/b` }, pattern);
  }
});

test('a host that is silent is given up after five seconds', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const silent = await standIn(t, (socket) => socket.on('data', () => t.mock.timers.tick(5_000)));
  await assertRefused(
    { url: `postgres://a@${silent}/b` },
    /did not answer in 5 s: check its address, and the firewall/,
  );
});

test('a query whose server falls silent fails by the machine', { skip }, async (t) => {
  const client = await open(t, { url: (await primaryServer()).socketUrl('postgres') });
  const { rows } = await client.query<{ readonly pid: number }>('SELECT pg_backend_pid() AS pid');
  const pid = rows[0]?.pid;
  assert.ok(pid);
  process.kill(pid, 'SIGSTOP');
  t.after(() => process.kill(pid, 'SIGCONT'));
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const queries = [client.query('SELECT 1'), client.query('SELECT 2')];
  const failed = Promise.all(queries.map((query) => assert.rejects(query, isMachineFault)));
  t.mock.timers.tick(60_000);
  await failed;
});

test('queries are sent without waiting, and fail by the machine if the connection closes', {
  skip,
}, async (t) => {
  const { folder, port } = await primaryServer();
  let received = '';
  const connections: { readonly client: Socket; readonly server: Socket }[] = [];
  const between = await standIn(t, (client) => {
    const server = createConnection(join(folder, `.s.PGSQL.${port}`)).on('error', () => {});
    client.on('data', (chunk) => {
      received += chunk.toString('latin1');
    });
    connections.push({ client: client.on('close', () => server.destroy()), server });
    client.pipe(server).pipe(client);
  });
  /** Two queries whose replies do not come before `release`. */
  async function twoQueries() {
    const client = await connect({ url: `postgres://postgres@${between}/postgres` });
    const connection = connections.at(-1);
    assert.ok(connection);
    connection.server.unpipe(connection.client);
    received = '';
    const queries = [client.query(`SELECT 'first' AS name`), client.query(`SELECT 'second' AS name`)];
    await eventually('both arrive', 5_000, () => received.includes('first') && received.includes('second'));
    return { client, queries, connection };
  }
  const good = await twoQueries();
  t.after(() => good.client.end());
  good.connection.server.pipe(good.connection.client);
  const replies = await Promise.all(good.queries);
  assert.deepEqual(
    replies.map(({ rows }) => rows),
    [[{ name: 'first' }], [{ name: 'second' }]],
  );

  const closed = await twoQueries();
  closed.connection.client.end();
  for (const query of closed.queries) await assert.rejects(query, isMachineFault);
  const ended = await twoQueries();
  const end = ended.client.end();
  ended.connection.client.end();
  for (const query of ended.queries) await assert.rejects(query, isMachineFault);
  await end;
  await assert.rejects(ended.client.query('SELECT 1'), isMachineFault);
});

test('a server that would lose commits is refused', { skip }, async (t) => {
  const server = await primaryServer();
  const safe = await open(t, { url: server.socketUrl('postgres') });
  await refuseUnsafe(safe);
  await safe.query('SET synchronous_commit = local');
  await refuseUnsafe(safe);
  await safe.query('SET synchronous_commit = off');
  await assert.rejects(
    refuseUnsafe(safe),
    /synchronous_commit is off, so that a crash would lose what was reported as stored/,
  );
  await reload(server, 'full_page_writes', 'off');
  await reload(server, 'fsync', 'off');
  t.after(async () => {
    await reload(server, 'full_page_writes', 'on');
    await reload(server, 'fsync', 'on');
  });
  await assert.rejects(refuseUnsafe(await open(t, { url: server.socketUrl('postgres') })), {
    name: 'DatabaseError',
    message:
      /fsync is off, so that a crash .*: set fsync = on; full_page_writes is off.*: set full_page_writes = on\.$/,
  });
});
