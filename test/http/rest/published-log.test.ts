import assert from 'node:assert/strict';
import { Agent, get } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
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

const dataDir = temporaryFolder(fileScope);
await (await startService(fileScope, { dataDir })).close();
writeLeaves(dataDir, 200);
const service = await startService(fileScope, { dataDir });

/** test/cli/outsider.test.ts audits the whole log of a registry, and test/evidence/log/tiles.test.ts has its tiles. */
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
