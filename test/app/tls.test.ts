import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { type ConnectionOptions, connect } from 'node:tls';
import { readServingConfig } from '../../src/config/config.ts';
import { closesByItself } from '../http/connect/closing-support.ts';
import { openBareListener } from '../http/rest/bare-listener.ts';
import { fileArtwork } from '../support/calls.ts';
import { type Certificate, frontOf, makeAuthority, trust } from '../support/certificates.ts';
import { createManualClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { fileScope } from '../support/file-scope.ts';
import { holdsNone } from '../support/local-server.ts';
import { scrape } from '../support/metrics.ts';
import { openSocket } from '../support/raw-talk.ts';
import { startService, type TestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const limitMs = 60_000;
const day = 86_400_000;

const authority = makeAuthority(fileScope);
trust(fileScope, authority);
const certificate = authority.issue('first');
const renewed = authority.issue('second', 3);
const settingsOf = ({ certificateFile, keyFile }: Pick<Certificate, 'certificateFile' | 'keyFile'>) => ({
  ARTSEAL_PUBLIC_TLS_CERT: certificateFile,
  ARTSEAL_PUBLIC_TLS_KEY: keyFile,
});

const service = await startService(fileScope, { env: settingsOf(certificate) });
const platform = await service.platform();

/** A connection to a listener of TLS on which no handshake has begun. */
const openPlain = (baseUrl: string) => openSocket(baseUrl.replace('https:', 'http:'));

/** Completes a handshake. Returns what was negotiated; rejects if the handshake fails. */
async function shakeHands({ publicUrl }: Pick<TestService, 'publicUrl'>, options: ConnectionOptions = {}) {
  const { hostname: host, port } = new URL(publicUrl);
  const socket = connect({ host, port: Number(port), ...options });
  try {
    await once(socket, 'secureConnect');
    const { alpnProtocol: protocol } = socket;
    return {
      version: socket.getProtocol(),
      protocol,
      shown: socket.getPeerX509Certificate()?.fingerprint256,
    };
  } finally {
    socket.destroy();
  }
}

const fingerprintOf = ({ certificate: pem }: Certificate) => new X509Certificate(pem).fingerprint256;
const linesOf = ({ logLines }: TestService) => logLines.map((line) => JSON.parse(line));

async function assertServes(one = service, caller = platform): Promise<void> {
  const answer = await fileArtwork(one, caller);
  assert.equal(answer.status, 200, answer.text);
}

test('the public listener speaks TLS 1.2 and 1.3, and HTTP/1.1 over it', async () => {
  assert.match(service.publicUrl, /^https:\/\/127\.0\.0\.1:\d+$/);
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const agreed = await shakeHands(service, {
      ...{ minVersion: version, maxVersion: version },
      ALPNProtocols: ['h2', 'http/1.1'],
    });
    assert.deepEqual(agreed, { version, protocol: 'http/1.1', shown: fingerprintOf(certificate) });
  }
  await assertServes();
});

for (const [what, options] of Object.entries({
  'TLS 1.1': { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' },
  'a cipher without forward secrecy': { maxVersion: 'TLSv1.2', ciphers: 'AES256-GCM-SHA384' },
  'a cipher without authenticated encryption': {
    maxVersion: 'TLSv1.2',
    ciphers: 'ECDHE-ECDSA-AES256-SHA384',
  },
  'HTTP/2 alone': { ALPNProtocols: ['h2'] },
} satisfies Record<string, ConnectionOptions>)) {
  test(`a client that speaks ${what} is rejected`, async () => {
    await assert.rejects(shakeHands(service, options), /alert/);
    await assertServes();
  });
}

test('a connection is not renegotiated', async () => {
  const { hostname: host, port } = new URL(service.publicUrl);
  const socket = connect({ host, port: Number(port), maxVersion: 'TLSv1.2' });
  await once(socket, 'secureConnect');
  socket.renegotiate({}, () => {});
  const [error] = await once(socket, 'error');
  assert.match(error.code, /NO_RENEGOTIATION/);
});

test('plain HTTP ends the connection, and the log has one line without a byte of it', async (t) => {
  const own = await startService(t, { env: settingsOf(certificate) });
  const socket = await openPlain(own.publicUrl);
  socket.end('GET /marked HTTP/1.1\r\nHost: marked\r\n\r\n');
  const received = await text(socket);
  assert.doesNotMatch(received, /HTTP/);
  await eventually('it is logged', limitMs, () => own.logLines.length > 0);
  const [line, ...more] = linesOf(own);
  const { level, client, code, msg } = line;
  const expected = [30, '127.0.0.1', 'ERR_SSL_HTTP_REQUEST', 'a TLS handshake failed'];
  assert.deepEqual([level, client, code, msg], expected);
  assert.deepEqual(more, []);
  assert.doesNotMatch(own.logLines.join(), /marked/);
});

/** The beginning of a first message that is never whole. */
const halfHello = Buffer.from(`1603010200010001fc0303${'00'.repeat(400)}`, 'hex');

for (const [what, bytes] of Object.entries({
  nothing: [],
  'half a handshake': [halfHello],
  'a byte at a time': Array.from(halfHello, (byte) => Buffer.of(byte)),
})) {
  test(`a client that sends ${what} is disconnected when the time for a handshake is over`, async (t) => {
    const tls = frontOf(certificate, { handshakeMs: 200 });
    const { server, baseUrl } = await openBareListener(t, async () => assert.fail(), { tls });
    const socket = await openPlain(baseUrl);
    const sending = setInterval(() => {
      const next = bytes.shift();
      if (next !== undefined) socket.write(next);
    }, 5);
    t.after(() => clearInterval(sending));
    socket.resume();
    await holdsNone(server, limitMs);
    await eventually('the connection is ended', limitMs, () => socket.readableEnded || socket.destroyed);
    socket.destroy();
  });
}

test('a connection without a finished handshake counts as a connection', async (t) => {
  const { server, baseUrl } = await openBareListener(t, async () => assert.fail(), {
    tls: frontOf(certificate),
  });
  server.maxConnections = 10;
  const silent = await Promise.all(Array.from({ length: 10 }, () => openPlain(baseUrl)));
  t.after(() => {
    for (const socket of silent) socket.destroy();
  });
  await assert.rejects(shakeHands({ publicUrl: baseUrl }), /disconnected|ECONNRESET/);
});

test('neither an unfinished handshake nor a kept connection delays closing', async (t) => {
  const own = await startService(t, { env: settingsOf(certificate) });
  const kept = new Agent({ keepAlive: true });
  t.after(() => kept.destroy());
  const sockets = [await openPlain(own.publicUrl), await openPlain(own.publicUrl)];
  sockets[0]?.write(halfHello);
  // A response to a later connection proves that these were accepted.
  const [answer] = await once(request(own.publicUrl, { agent: kept }).end(), 'response');
  await text(answer);
  assert.ok(await closesByItself(t, own, sockets));
});

/** TLS files of a service that can be replaced. */
function replaceable(t: TestContext, first: Certificate) {
  const folder = temporaryFolder(t);
  const files = { certificateFile: join(folder, 'tls.pem'), keyFile: join(folder, 'tls.key') };
  const put = (path: string, content: string) => {
    writeFileSync(`${path}.new`, content, { mode: 0o600 });
    renameSync(`${path}.new`, path);
  };
  const replace = (by: Pick<Certificate, 'certificate' | 'key'>) => {
    put(files.keyFile, by.key);
    put(files.certificateFile, by.certificate);
  };
  replace(first);
  return { folder, files, replace };
}

/** A service with a manual clock. */
async function startWithClock(t: TestContext, files: Pick<Certificate, 'certificateFile' | 'keyFile'>) {
  const clock = createManualClock();
  const own = await startService(t, {
    env: { ...settingsOf(files), ARTSEAL_METRICS_ADDR: '127.0.0.1:0' },
    clock,
  });
  const errors = () => linesOf(own).filter(({ level }) => level >= 50);
  return { own, errors, clock, pass: (ms: number) => clock.advance(ms) };
}

test('a certificate that is replaced is used within seconds, once it has stayed the same', async (t) => {
  const { files, replace } = replaceable(t, certificate);
  const { own, errors, pass } = await startWithClock(t, files);
  const endS = async () => {
    const { value } = await scrape(`http://${own.metricsAddress}/metrics`);
    return value('artseal_certificate_end_seconds', { listener: 'public' });
  };
  const endOf = ({ certificate: pem }: Certificate) => +new X509Certificate(pem).validToDate / 1_000;
  assert.equal(await endS(), endOf(certificate));
  replace(renewed);
  pass(2_000);
  assert.equal((await shakeHands(own)).shown, fingerprintOf(certificate));
  pass(2_000);
  assert.equal((await shakeHands(own)).shown, fingerprintOf(renewed));
  assert.equal(await endS(), endOf(renewed));
  assert.deepEqual(errors(), []);
});

test('the certificate is reloaded if a link in its path leads to another folder', async (t) => {
  const folder = temporaryFolder(t);
  for (const [name, { certificate: pem, key }] of Object.entries({ one: certificate, two: renewed })) {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, 'tls.crt'), pem);
    writeFileSync(join(folder, name, 'tls.key'), key, { mode: 0o600 });
  }
  const lead = (to: string) => {
    symlinkSync(to, join(folder, 'next'));
    renameSync(join(folder, 'next'), join(folder, 'current'));
  };
  lead('one');
  const files = {
    certificateFile: join(folder, 'current', 'tls.crt'),
    keyFile: join(folder, 'current', 'tls.key'),
  };
  const { own, pass } = await startWithClock(t, files);
  lead('two');
  pass(4_000);
  assert.equal((await shakeHands(own)).shown, fingerprintOf(renewed));
});

test('files that cannot be used are logged once, and the current certificate is kept', async (t) => {
  const { files, replace } = replaceable(t, certificate);
  const { own, errors, pass } = await startWithClock(t, files);
  const faulty = async (change: () => void, why: RegExp) => {
    const before = errors().length;
    change();
    pass(60_000);
    const [error, ...more] = errors().slice(before);
    assert.match(error?.why ?? '', why);
    assert.deepEqual([error?.listener, more], ['public', []]);
    assert.equal((await shakeHands(own)).shown, fingerprintOf(certificate));
  };
  await faulty(
    () => replace({ certificate: renewed.certificate, key: certificate.key }),
    /private key of the first/,
  );
  await faulty(() => renameSync(files.keyFile, `${files.keyFile}.away`), /does not exist/);
  // Fails other than a missing file, as a file in a folder that this user cannot read.
  await faulty(() => symlinkSync(files.keyFile, files.keyFile), /ELOOP/);
  await faulty(() => {
    replace(renewed);
    chmodSync(files.keyFile, 0o622);
  }, /chmod go-w/);
  chmodSync(files.keyFile, 0o600);
  pass(4_000);
  assert.equal((await shakeHands(own)).shown, fingerprintOf(renewed));
});

test('a certificate that expires soon and one that has expired are logged once each', async (t) => {
  const { files, replace } = replaceable(t, authority.issue('long', 90));
  const { own, clock, pass } = await startWithClock(t, files);
  const ages = () =>
    linesOf(own).flatMap(({ level, msg, listener }) => (listener === undefined ? [] : [[level, msg]]));
  const wait = (ms: number) => {
    clock.setWall(clock.nowMs() + ms);
    pass(10_000);
  };
  wait(59 * day);
  assert.deepEqual(ages(), []);
  const near = [40, 'the certificate expires soon: renew it'];
  wait(2 * day);
  assert.deepEqual(ages(), [near]);
  const over = [50, 'the certificate has expired: clients reject it'];
  wait(30 * day);
  assert.deepEqual(ages(), [near, over]);
  replace(authority.issue('longer', 365));
  wait(0);
  assert.deepEqual(ages(), [near, over, [30, 'the certificate was reloaded']]);
});

test('settings with unusable files are rejected, with a fault for each listener', async (t) => {
  const folder = temporaryFolder(t);
  const mismatched = settingsOf({ ...certificate, keyFile: renewed.keyFile });
  const env = {
    ...{ ...mismatched, ARTSEAL_DATA_DIR: folder },
    ARTSEAL_INTERNAL_TLS_CERT: certificate.certificateFile,
    ARTSEAL_INTERNAL_TLS_KEY: folder,
  };
  assert.throws(() => readServingConfig(env), {
    message: `ARTSEAL_PUBLIC_TLS_KEY must name the private key of the first certificate.
ARTSEAL_INTERNAL_TLS_KEY cannot be used: ${folder} is not an ordinary file.`,
  });
  const keyFile = join(folder, 'key.pem');
  writeFileSync(keyFile, certificate.key);
  chmodSync(keyFile, 0o622);
  const exposed = settingsOf({ ...certificate, keyFile });
  await assert.rejects(startService(t, { env: exposed }), /key\.pem \(mode 0622\).*chmod go-w/);
});
