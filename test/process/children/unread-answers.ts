/**
 * Tests on a network of their own with packets as small as Ethernet's, whose clients have small receive buffers:
 * test/process/own-network.slow.test.ts runs them there.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { closedWindow, frame, frameTypes, requestHeaders } from '../../http/connect/raw-http2.ts';
import { makeAuthority, trust } from '../../support/certificates.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { issueInto } from '../../support/issued.ts';
import { rawRequest } from '../../support/raw-http.ts';
import { openSocket } from '../../support/raw-talk.ts';
import { artwork } from '../../support/samples.ts';
import { headersOf, send } from '../../support/signed-request.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { typedCall } from '../../support/typed-json.ts';
import { serveWatched } from '../../support/watched-command.ts';

execFileSync('ip', ['link', 'set', 'lo', 'up', 'mtu', '1500']);
writeFileSync('/proc/sys/net/ipv4/tcp_rmem', '4096 4096 4096');

/** The allowed growth of the process while its responses are not read, in bytes. */
const grownBytesMax = 64 * 1_048_576;
/** Connections that are opened at the same time. */
const together = 20;
/** How long the memory is watched, in milliseconds. */
const watchedMs = 4_000;
/** The filings: small ones first, so that large ones fill a page; and the entries that are published. */
const [small, page, entries] = [150, 100, 250];
const list = `/api/v1/filing?pageSize=${page}`;
const tile = (width: number) => `/log/tile/entries/000.p/${width}`;
const [long, longest] = [200, 2_000].map((count) => '𠮷'.repeat(count));
const large = { author: long, era: long, size: long, material: long, condition: longest, price: 1 };

const authority = makeAuthority(fileScope);
trust(fileScope, authority);
const { certificateFile, keyFile } = authority.issue('listener');
const dataDir = temporaryFolder(fileScope);
const env = {
  ARTSEAL_DATA_DIR: dataDir,
  ARTSEAL_PUBLIC_TLS_CERT: certificateFile,
  ARTSEAL_PUBLIC_TLS_KEY: keyFile,
};
const { platform, token } = await issueInto(dataDir, 1);

/** Starts a service with large filings. Each request was made once, because a process keeps memory that it used. */
async function startFilled(t: TestContext) {
  const { child, publicUrl, internalUrl } = await serveWatched(t, env);
  if ((await send(publicUrl, platform, { target: list })).json.filings.length === 0) await fill(publicUrl);
  await eventually('entries are published', 60_000, async () => (await fetch(publicUrl + tile(entries))).ok);
  for (let round = 0; round < 100; round += 1) {
    assert.equal((await send(publicUrl, platform, { target: list })).status, 200);
    await (await fetch(publicUrl + tile(entries - round))).bytes();
    await typedCall(internalUrl, token, 'FilingService/ListFilings', { pageSize: page });
  }
  return { pid: child.pid, publicUrl, internalUrl };
}

async function fill(publicUrl: string): Promise<void> {
  for (let count = 0; count < small + page; count += 1) {
    const body = JSON.stringify(count < small ? artwork : large);
    const answer = await send(publicUrl, platform, { target: '/api/v1/filing', body });
    assert.equal(answer.status, 200, answer.text);
  }
}

type Filled = Awaited<ReturnType<typeof startFilled>>;

/** The resident memory of a service, in bytes. */
function residentOf({ pid }: Filled): number {
  const [, kibibytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? [];
  return Number(kibibytes) * 1_024;
}

const times = (count: number, make: (place: number) => Uint8Array): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, place) => make(place)));

const get = (target: string, headers = {}) => rawRequest('GET', target, { Host: 'x', ...headers });

/** A list over HTTP/2. */
function typedList(place: number): Buffer {
  const stream = 2 * place + 1;
  const headers = {
    ':method': 'POST',
    ':scheme': 'http',
    ':path': '/artseal.v1.FilingService/ListFilings',
    ':authority': 'x',
    'content-type': 'application/json',
    authorization: `Bearer ${token}`,
  };
  const message = frame(frameTypes.data, 1, stream, Buffer.from(JSON.stringify({ pageSize: page })));
  return Buffer.concat([requestHeaders(stream, headers, { isLast: false }), message]);
}

interface Attack {
  readonly connections: number;
  readonly to: 'publicUrl' | 'internalUrl';
  /** What each of them sends. */
  bytes(): Buffer;
  /** How long each is open, in milliseconds, if not to the end; then `together` of them are opened each second. */
  readonly openMs?: number;
}

const attacks: Record<string, Attack> = {
  'lists of a platform within its rate, 16 pipelined requests': {
    ...{ connections: 10, to: 'publicUrl' },
    bytes: () => times(16, () => get(list, headersOf(platform, { target: list }))),
  },
  'entries of the log, asked for by anybody': {
    ...{ connections: 1_200, to: 'publicUrl' },
    bytes: () => times(16, (place) => get(tile(entries - place))),
  },
  'lists over HTTP/2 whose window is closed': {
    ...{ connections: 2, to: 'internalUrl' },
    bytes: () => Buffer.concat([closedWindow, times(100, typedList)]),
  },
  'lists over HTTP/2 whose window is closed, on connections that are dropped': {
    ...{ connections: 160, to: 'internalUrl', openMs: 500 },
    bytes: () => Buffer.concat([closedWindow, times(100, typedList)]),
  },
};

for (const [name, { connections, to, bytes, openMs }] of Object.entries(attacks)) {
  test(`a service whose responses are not read grows by at most 64 MB: ${name}`, async (t) => {
    const service = await startFilled(t);
    const before = residentOf(service);
    let peak = before;
    const open = async () => {
      const socket = await openSocket(service[to]);
      t.after(() => socket.destroy());
      socket.pause().write(bytes());
      peak = Math.max(peak, residentOf(service));
      if (openMs !== undefined) setTimeout(() => socket.destroy(), openMs);
    };
    for (let count = 0; count < connections; count += together) {
      const endMs = performance.now() + 1_000;
      const opening = Promise.all(Array.from({ length: Math.min(together, connections) }, open));
      while (openMs !== undefined && performance.now() < endMs) {
        await delay(20);
        peak = Math.max(peak, residentOf(service));
      }
      await opening;
    }
    for (const endMs = performance.now() + watchedMs; performance.now() < endMs; ) {
      await delay(20);
      peak = Math.max(peak, residentOf(service));
    }
    t.diagnostic(`grown by ${Math.round((peak - before) / 1_048_576)} MiB: ${name}`);
    assert.ok(peak - before <= grownBytesMax, `it grew by ${peak - before} bytes`);
    assert.equal((await fetch(`${service.publicUrl}/healthz`)).status, 200);
  });
}
