import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, type TestContext, test } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { storedFilings } from '../support/filing-load.ts';
import { issueInto, serveIssued } from '../support/issued.ts';
import { openSocket } from '../support/raw-talk.ts';
import { artwork } from '../support/samples.ts';
import { headersOf, send } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { typedCall } from '../support/typed-json.ts';
import { serveWatched, type WatchedService } from '../support/watched-command.ts';

const filing = { target: '/api/v1/filing', body: JSON.stringify(artwork) };
/** The longest wait for something that has to happen. */
const timeoutMs = 60_000;

type Running = Awaited<ReturnType<typeof serveIssued>>;

const isRefused = async (url: string): Promise<boolean> => {
  const socket = await openSocket(url).catch(() => undefined);
  socket?.destroy();
  return socket === undefined;
};

const isClosed = ({ publicUrl, internalUrl }: Running): Promise<boolean> =>
  eventually('new connections are refused', timeoutMs, async () => {
    return (await isRefused(publicUrl)) && (await isRefused(internalUrl));
  });

/** The log line of a service that waited for connections in vain. */
const cutOff = /connections that are still open are cut off/;

/** Asserts that a stopping service ends without waiting. */
async function assertEnds({ end, stderr }: WatchedService): Promise<void> {
  assert.equal(await end(), 0, stderr());
  assert.doesNotMatch(stderr(), cutOff);
}

/** A REST call in progress: the service has asked for the body, which is not sent yet. Its connection is kept. */
async function callInFlight(t: TestContext, { publicUrl, platform }: Running) {
  const { hostname, port } = new URL(publicUrl);
  const length = Buffer.byteLength(filing.body);
  const headers = headersOf(platform, {
    ...filing,
    headers: { Expect: '100-continue', 'Content-Length': `${length}` },
  });
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const outgoing = request({ hostname, port, agent, method: 'POST', path: filing.target, headers });
  const answer = once(outgoing, 'response').then(async ([incoming]) => ({
    status: incoming.statusCode,
    text: await text(incoming),
  }));
  answer.catch(() => {});
  outgoing.flushHeaders();
  await once(outgoing, 'continue');
  return {
    finish: () => {
      outgoing.end(filing.body);
      return answer;
    },
  };
}

/** Executes a command whose standard error is a full pipe without a reader. */
const withFullPipe = [
  'sh',
  '-c',
  `pipe=$(mktemp -u); mkfifo "$pipe"; exec 3<>"$pipe"
   for bytes in 4096 1; do dd if=/dev/zero of="$pipe" bs=$bytes oflag=nonblock; done
   rm "$pipe"; exec "$@" 2>&3`,
  'sh',
];

describe('stopping', { concurrency: 4, timeout: 300_000 }, () => {
  test('a client that never finishes its request delays the exit only for a while', async (t) => {
    const service = await serveIssued(t);
    for (const url of [service.publicUrl, service.internalUrl]) {
      const socket = await openSocket(url);
      t.after(() => socket.destroy());
      socket.write('POST /api/v1/filing HTTP/1.1\r\nHost: localhost\r\nX-Api-');
    }
    await callInFlight(t, service);
    assert.equal(await service.stop('SIGTERM'), 0);
    assert.match(service.stderr(), cutOff);
  });

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`${signal} finishes the calls in flight, rejects new ones, and exits with 0`, async (t) => {
      const service = await serveIssued(t);
      const calls = await Promise.all(Array.from({ length: 8 }, () => callInFlight(t, service)));
      service.child.kill(signal);
      await isClosed(service);
      service.child.kill(signal);
      for (const answer of await Promise.all(calls.map(({ finish }) => finish()))) {
        assert.equal(answer.status, 200, answer.text);
      }
      await assertEnds(service);
      const again = await serveWatched(t, { ARTSEAL_DATA_DIR: service.dataDir });
      const { json } = await typedCall(again.internalUrl, service.token, 'FilingService/ListFilings', {});
      assert.equal(json.filings.length, 8, 'all successful filings are stored');
    });
  }

  test('SIGTERM under load: stored filings had a response, and the WAL is checkpointed', async (t) => {
    const service = await serveIssued(t);
    const { publicUrl, platform, dataDir } = service;
    const answered: string[] = [];
    let isStopping = false;
    const work = async () => {
      while (!isStopping) {
        const answer = await send(publicUrl, platform, filing).catch(() => undefined);
        if (answer?.status === 200) answered.push(answer.json.filingNo);
        else assert.ok(isStopping, answer?.text ?? 'a connection broke before the end');
        if (!isStopping && answered.length >= 50) {
          isStopping = true;
          service.child.kill('SIGTERM');
        }
      }
    };
    await Promise.all(Array.from({ length: 16 }, work));
    await assertEnds(service);
    for (const suffix of ['-wal', '-shm'])
      assert.equal(existsSync(join(dataDir, `artseal.db${suffix}`)), false);
    const stored = await storedFilings(dataDir);
    assert.deepEqual(
      stored.map(({ filingNo }) => filingNo),
      answered.toSorted(),
    );
  });

  for (const [what, launcher] of [
    ['that nobody reads', withFullPipe],
    ['whose reader has ended', []],
  ] as const)
    test(`a log ${what} delays neither calls nor the exit`, async (t) => {
      const dataDir = temporaryFolder(t);
      const { platform } = await issueInto(dataDir, 1);
      const service = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir }, launcher);
      if (launcher !== withFullPipe) service.child.stderr.destroy();
      for (let call = 0; call < 100; call += 1)
        assert.equal((await send(service.publicUrl, platform, filing)).status, 200);
      assert.equal(await service.stop('SIGTERM'), 0);
    });
});
