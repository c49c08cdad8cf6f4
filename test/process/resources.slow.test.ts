import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, statSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { type TestContext, test } from 'node:test';
import { fileArtwork } from '../support/calls.ts';
import { eventually } from '../support/eventually.ts';
import { serveIssued } from '../support/issued.ts';
import { openSocket } from '../support/raw-talk.ts';
import { typedCall } from '../support/typed-json.ts';
import type { WatchedService } from '../support/watched-command.ts';

const noProc = statSync('/proc/self/fd', { throwIfNoEntry: false }) === undefined;
/** The longest wait for something that has to happen. */
const timeoutMs = 60_000;

const openFiles = ({ child }: WatchedService): number => readdirSync(`/proc/${child.pid}/fd`).length;

const http2Preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

/** Connections that came to their end in each way. */
const endings: Record<string, (service: WatchedService, t: TestContext) => Promise<unknown>> = {
  'CONNECT, then reset': async ({ publicUrl, internalUrl }) => {
    for (const url of [publicUrl, internalUrl]) {
      const socket = await openSocket(url);
      socket.write('CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n', () => socket.resetAndDestroy());
      await once(socket, 'close');
    }
  },
  'CONNECT, then kept open': async ({ publicUrl, internalUrl }, t) => {
    for (const url of [publicUrl, internalUrl]) {
      const socket = await openSocket(url);
      socket.resume().write('CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n');
      await Promise.race(['end', 'close'].map((event) => once(socket, event)));
      t.after(() => socket.destroy());
    }
  },
  'HTTP/2, closed in order': async ({ internalUrl }) => {
    const session = connectHttp2(internalUrl);
    const request = session.request({ ':path': '/' }).resume();
    await once(request, 'close');
    session.close();
    await once(session, 'close');
  },
  'HTTP/2, half-closed': async ({ internalUrl }, t) => {
    const socket = await openSocket(internalUrl);
    t.after(() => socket.destroy());
    socket.end(Buffer.from(`${http2Preface}\0\0\0\u0004\0\0\0\0\0`));
    socket.resume();
    await Promise.race(['end', 'close'].map((event) => once(socket, event)));
  },
  'HTTP/2, destroyed during a call': async ({ internalUrl }) => {
    const session = connectHttp2(internalUrl).on('error', () => {});
    session
      .request({ ':method': 'POST', ':path': '/' })
      .on('error', () => {})
      .write('{');
    await once(session, 'connect');
    session.destroy();
    await once(session, 'close');
  },
};

test('closed connections leave no files open', { skip: noProc, timeout: 300_000 }, async (t) => {
  const service = await serveIssued(t);
  // What is opened once, with the first calls, is not counted.
  await typedCall(service.internalUrl, service.token, 'FilingService/ListFilings', {});
  const before = openFiles(service);
  for (const [how, end] of Object.entries(endings)) {
    await t.test(how, async () => {
      for (let connection = 0; connection < 20; connection += 1) await end(service, t);
      await eventually('their files are closed', timeoutMs, () => openFiles(service) < before + 10);
    });
  }
});

test('a silent log is silent, and a misspelt setting is warned of by its name alone', {
  timeout: 300_000,
}, async (t) => {
  const service = await serveIssued(t, { ARTSEAL_LOG_LEVEL: 'silent', ARTSEAL_DATADIR: 'x' });
  assert.equal((await fileArtwork(service, service.platform)).status, 200);
  assert.equal(await service.stop(), 0);
  assert.equal(service.stderr(), '');
  const warned = await serveIssued(t, { ARTSEAL_MASTERKEY: 'a-secret-in-the-wrong-place' });
  assert.equal(await warned.stop(), 0);
  const [, warning = '{}'] = warned.stderr().split('\n');
  assert.equal(JSON.parse(warning).variable, 'ARTSEAL_MASTERKEY');
  assert.equal(warned.stderr().includes('a-secret-in-the-wrong-place'), false);
});
