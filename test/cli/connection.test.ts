import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, statSync } from 'node:fs';
import { createServer as createHttp2Server } from 'node:http2';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { Code, ConnectError } from '@connectrpc/connect';
import { errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import Sqlite from 'better-sqlite3';
import { ErrorInfoSchema } from '../../gen/google/rpc/error_details_pb.ts';
import { artsealWith } from '../support/artseal.ts';
import { issueInto } from '../support/issued.ts';
import { listenLocally } from '../support/local-server.ts';
import { startService } from '../support/service.ts';
import { send } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const create = 'key create --name gallery --tier TRIAL';

test('only the user of the server may connect to the admin socket', async (t) => {
  const { dataDir } = await startService(t);
  assert.equal(statSync(join(dataDir, 'admin.sock')).mode & 0o777, 0o600);
});

test('a command over the admin socket needs no other setting than the folder', async (t) => {
  const service = await startService(t, { env: { ARTSEAL_CURRENCY: 'EUR' } });
  await artsealWith({ ARTSEAL_DATA_DIR: service.dataDir, ARTSEAL_CURRENCY: 'CNY' }).json(create);
});

test('the admin socket of a folder with a long path is used', async (t) => {
  const dataDir = join(temporaryFolder(t), 'a'.repeat(120));
  const service = await startService(t, { dataDir });
  const key = await artsealWith({ ARTSEAL_DATA_DIR: dataDir }).json(create);
  const { status } = await send(service.publicUrl, key, { target: '/api/v1/provenance/AS-2026-999999' });
  assert.equal(status, 404);
});

test('a remote command needs a URL and a token that the server knows', async (t) => {
  const { internalUrl, publicUrl } = await startService(t);
  const remote = (token: string, url: string) => artsealWith({ ARTSEAL_TOKEN: token }, ['--url', url]);
  const noToken = /^artseal: key list needs a token in ARTSEAL_TOKEN with --url; see artseal key --help$/;
  const silent = /^artseal: http:\/\/127\.0\.0\.1:1 does not respond \(.*ECONNREFUSED/;
  for (const [token, url, code, message] of [
    ['', internalUrl, 2, noToken],
    ['it_1\nit_2', internalUrl, 2, /^(?!.*it_1).*without spaces and line ends/],
    ['it_1\n', internalUrl, 1, /^artseal: AUTH_HEADER_INVALID: /],
    ['it_1', 'http://127.0.0.1:1', 1, silent],
    ['it_1', publicUrl, 1, /is not an internal API: check the port/],
    ['it_1', internalUrl.replace('http:', 'https:'), 1, /is not an internal API: check the port/],
  ] as const)
    await remote(token, url).errors(code, 'key list', message);
  for (const url of [
    'localhost:1',
    'http://example.org',
    'https://a:1/b',
    'https://a:b@c',
    'https://a:99999',
    'unix:a',
  ])
    await remote('it_1', url).errors(2, 'key list', /takes --url https:.*, without a path, not '/);
});

test('a token without the scope operate gets PERMISSION_DENIED', async (t) => {
  const { internalUrl, token } = await startService(t);
  const artseal = artsealWith({ ARTSEAL_TOKEN: await token() }, ['--url', internalUrl]);
  await artseal.errors(1, 'key list', /^artseal: PERMISSION_DENIED: /);
});

test('a command at the URL of an admin socket names its user in the audit log', async (t) => {
  const { dataDir } = await startService(t);
  const env = { ARTSEAL_TOKEN: 'it_1', SUDO_USER: 'ann' };
  const artseal = artsealWith(env, ['--url', `unix:${join(dataDir, 'admin.sock')}`]);
  await artseal.text(create);
  assert.equal((await artseal.list('audit-log'))[0].actor, 'local:ann');
});

test('commands on a stopped folder wait for one another', async (t) => {
  const env = { ARTSEAL_DATA_DIR: temporaryFolder(t) };
  await issueInto(env.ARTSEAL_DATA_DIR, 0);
  const artseal = artsealWith(env);
  const names = ['one', 'two', 'three', 'four'];
  await Promise.all(names.map((name) => artseal.json(`key create --name ${name} --tier TRIAL`)));
  assert.deepEqual((await artseal.list('platform list')).map(({ name }) => name).sort(), names.toSorted());
});

test('a file that is no socket, or a socket that may not be used, is reported', async (t) => {
  const env = { ARTSEAL_DATA_DIR: temporaryFolder(t) };
  await issueInto(env.ARTSEAL_DATA_DIR, 0);
  const path = join(env.ARTSEAL_DATA_DIR, 'admin.sock');
  const server = createServer((socket) => socket.destroy()).listen({ path });
  t.after(() => server.close());
  await artsealWith(env).errors(1, 'key list', /^artseal: the server of \S+ does not respond \(/);
  if (process.getuid?.() === 0) return;
  chmodSync(path, 0);
  await artsealWith(env).errors(1, 'key list', /this user may not use \S+admin\.sock: /);
});

test('a connection that breaks names the page, since the call may have been carried out', async (t) => {
  const server = createServer((socket) => socket.resetAndDestroy());
  const url = await listenLocally(t, server, () => {});
  const artseal = artsealWith({ ARTSEAL_TOKEN: 'it_1' }, ['--url', url]);
  await artseal.errors(1, create, /ECONNRESET.*\): see docs\/operate\/incidents\/server-hangs\.md$/);
});

test('a command calls no server in a folder that other users may change', async (t) => {
  const { dataDir } = await startService(t);
  const artseal = artsealWith({ ARTSEAL_DATA_DIR: dataDir });
  chmodSync(dataDir, 0o777);
  await artseal.errors(2, 'key list', /may be changed by other users of this machine: chmod go-w/);
});

test('a full disk is reported with what to do', async (t) => {
  const env = { ARTSEAL_DATA_DIR: temporaryFolder(t) };
  await issueInto(env.ARTSEAL_DATA_DIR, 0);
  t.mock.method(Sqlite.prototype, 'exec', () => {
    throw new Sqlite.SqliteError('database or disk is full', 'SQLITE_FULL');
  });
  assert.equal(
    await artsealWith(env).errors(1, 'key list'),
    `artseal: ${join(env.ARTSEAL_DATA_DIR, 'artseal.lock')} cannot be written, since the disk is full: make room`,
  );
});

test('errors of an older and of a newer server are understood', async (t) => {
  const dataDir = temporaryFolder(t);
  for (const [code, reason, message] of [
    [Code.Unimplemented, 'NOT_FOUND', /does not know this command: its version is not \d/],
    [Code.FailedPrecondition, 'NOT_YET_KNOWN', /^artseal: NOT_YET_KNOWN: no$/],
  ] as const) {
    const details = [{ desc: ErrorInfoSchema, value: { reason } }];
    const body = errorToJsonBytes(new ConnectError('no', code, undefined, details), undefined);
    const server = createHttp2Server((request, response) => {
      request.resume();
      response.writeHead(400, { 'Content-Type': 'application/json' }).end(body);
    });
    server.listen(join(dataDir, 'admin.sock'));
    await once(server, 'listening');
    await artsealWith({ ARTSEAL_DATA_DIR: dataDir }).errors(1, 'key list', message);
    server.close();
    await once(server, 'close');
  }
});
