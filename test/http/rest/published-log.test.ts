import assert from 'node:assert/strict';
import { Agent, get } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { tilePath } from '../../../src/evidence/log/tiles.ts';
import { signedBy } from '../../evidence/log/publishing.ts';
import { hashOfLeaf, rootOf } from '../../evidence/verifier/small-log.ts';
import { fileArtwork } from '../../support/calls.ts';
import { fileScope } from '../../support/file-scope.ts';
import { writeLeaves } from '../../support/leaves.ts';
import { startService, type TestService } from '../../support/service.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

/** A response with the bytes of its body. */
interface BytesAnswer {
  readonly status: number;
  readonly bytes: Buffer;
}

const agent = new Agent({ keepAlive: true, maxSockets: 100 });
fileScope.after(() => agent.destroy());

function fetchBytes({ publicUrl }: Pick<TestService, 'publicUrl'>, path: string): Promise<BytesAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<BytesAnswer>();
  get(`${publicUrl}${path}`, { agent }, async (incoming) => {
    resolve({ status: incoming.statusCode ?? 0, bytes: await buffer(incoming) });
  }).on('error', reject);
  return promise;
}

const size = 257;
const dataDir = temporaryFolder(fileScope);
await (await startService(fileScope, { dataDir })).close();
const leaves = writeLeaves(dataDir, size);
const service = await startService(fileScope, { dataDir });

/** The hashes of a level of tiles in a tree of that size, as C2SP tlog-tiles counts them. */
async function fetchLevel(level: number): Promise<Buffer[]> {
  const count = Math.floor(size / 256 ** level);
  const [full, partial] = [Math.floor(count / 256), count % 256];
  const paths = Array.from({ length: full }, (_, place) => tilePath({ level, place, width: 256 }));
  if (partial > 0) paths.push(tilePath({ level, place: full, width: partial }));
  const hashes: Buffer[] = [];
  for (const path of paths) {
    const { status, bytes } = await fetchBytes(service, `/log/tile/${path}`);
    assert.equal(status, 200, path);
    for (let at = 0; at < bytes.length; at += 32) hashes.push(bytes.subarray(at, at + 32));
  }
  assert.equal(hashes.length, count);
  return hashes;
}

test('anybody can compute the signed root from the tiles', async () => {
  const vkey = (await fetchBytes(service, '/log/vkey')).bytes.toString().trimEnd();
  const signed = signedBy((await fetchBytes(service, '/log/checkpoint')).bytes.toString(), [vkey]);
  assert.equal(signed.size, size);
  const hashes = await fetchLevel(0);
  assert.deepEqual(rootOf(hashes), Buffer.from(signed.root));
  assert.deepEqual(hashes, leaves.map(hashOfLeaf));
  assert.deepEqual(await fetchLevel(1), [rootOf(hashes.slice(0, 256))]);
});

test('a flood of requests for tiles does not delay signed calls', async () => {
  const platform = await service.platform();
  const paths = Array.from({ length: 200 }, (_, nth) => `/log/tile/entries/000.p/${1 + nth}`);
  let isOver = false;
  let requestsMax = 0;
  const watching = (async () => {
    while (!isOver) {
      requestsMax = Math.max(requestsMax, (await service.store.metrics()).requestsInFlight);
      await new Promise(setImmediate);
    }
  })();
  const [tiles, filed] = await Promise.all([
    Promise.all(paths.map((path) => fetchBytes(service, path))),
    Promise.all(Array.from({ length: 20 }, () => fileArtwork(service, platform))),
  ]);
  isOver = true;
  await watching;
  for (const { status, text } of filed) assert.equal(status, 200, text);
  const rejected = tiles.filter(({ status }) => status !== 200);
  for (const { status, bytes } of rejected) {
    assert.equal(status, 503);
    assert.equal(JSON.parse(bytes.toString()).code, 'UNAVAILABLE');
  }
  assert.ok(rejected.length < tiles.length);
  // Two of unauthenticated callers, those that were signed, and the one that signs checkpoints.
  assert.ok(requestsMax <= 2 + 20 + 1, `${requestsMax} requests at once`);
});
