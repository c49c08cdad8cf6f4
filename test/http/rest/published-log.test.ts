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
import { assertDocumented } from '../../support/openapi.ts';
import { rawAnswer, rawRequest } from '../../support/raw-http.ts';
import { assertRefused } from '../../support/rejected.ts';
import { startService, type TestService } from '../../support/service.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

/** An answer with the bytes of its body. */
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

/** A service whose log was filled up to so many leaves before it started. */
async function startFilled(size: number): Promise<{ service: TestService; leaves: readonly string[] }> {
  const dataDir = temporaryFolder(fileScope);
  await (await startService(fileScope, { dataDir })).close();
  const leaves = writeLeaves(dataDir, size);
  return { service: await startService(fileScope, { dataDir }), leaves };
}

/** The newest checkpoint, which the published key signed. */
async function checkpointOf(service: TestService) {
  const vkey = (await fetchBytes(service, '/log/vkey')).bytes.toString().trimEnd();
  const { size, root } = signedBy((await fetchBytes(service, '/log/checkpoint')).bytes.toString(), [vkey]);
  return { size, root: Buffer.from(root) };
}

/** All tiles that a tree of that size has, as C2SP tlog-tiles counts them: by level, their hashes one behind the other. */
async function fetchLevel(service: TestService, level: number, size: number): Promise<Buffer[]> {
  const whole = Math.floor(size / 256 ** level);
  const [full, partial] = [Math.floor(whole / 256), whole % 256];
  const paths = Array.from({ length: full }, (_, place) => tilePath({ level, place, width: 256 }));
  if (partial > 0) paths.push(tilePath({ level, place: full, width: partial }));
  const hashes: Buffer[] = [];
  for (const path of paths) {
    const { status, bytes } = await fetchBytes(service, `/log/tile/${path}`);
    assert.equal(status, 200, path);
    for (let at = 0; at < bytes.length; at += 32) hashes.push(bytes.subarray(at, at + 32));
  }
  assert.equal(hashes.length, whole);
  return hashes;
}

for (const size of [255, 256, 257]) {
  test(`from the tiles of ${size} leaves anybody computes the root that was signed`, async () => {
    const { service, leaves } = await startFilled(size);
    const { root, size: signed } = await checkpointOf(service);
    assert.equal(signed, size);
    const hashes = await fetchLevel(service, 0, size);
    assert.deepEqual(rootOf(hashes), root);
    assert.deepEqual(hashes, leaves.map(hashOfLeaf));
    const above = await fetchLevel(service, 1, size);
    assert.deepEqual(above, size < 256 ? [] : [rootOf(hashes.slice(0, 256))]);
  });
}

const large = await startFilled(65_536 + 300);

test('so it does from those of 65,836, by the roots of the full tiles as well', async () => {
  const { service, leaves } = large;
  const { root, size } = await checkpointOf(service);
  assert.equal(size, leaves.length);
  const [level1, level2] = [await fetchLevel(service, 1, size), await fetchLevel(service, 2, size)];
  const [left = assert.fail(), right = assert.fail()] = [level2[0], level1[256]];
  assert.deepEqual(rootOf(level1.slice(0, 256)), left);
  const { bytes } = await fetchBytes(service, '/log/tile/0/257.p/44');
  const last = leaves.slice(257 * 256).map(hashOfLeaf);
  assert.deepEqual(bytes, Buffer.concat(last));
  assert.deepEqual(rootOf([left, rootOf([right, rootOf(last)])]), root);
});

test('what is beyond the newest checkpoint, or written otherwise, is not there', async () => {
  const { service } = large;
  const ask = (path: string) => rawAnswer(service.publicUrl, rawRequest('GET', path, { Host: 'x' }));
  for (const tile of [
    ...[
      '0/257',
      '0/257.p/45',
      '0/257.p/0',
      '0/256.p/256',
      '0/257.p/044',
      '0/258',
      '1/001.p/2',
      '2/000',
      '2/000.p/2',
    ],
    ...[
      '3/000',
      '63/000',
      '64/000',
      '0/x000/257.p/44',
      '0/257%2ep/44',
      '0/%32%35%37.p/44',
      '0/0257.p/44',
      '0/x257/.p/44',
    ],
    ...[
      '0/x999/x999/x999/x999/x999/999',
      'entries/257',
      'entries/257.p/45',
      'entries',
      'entries/',
      '0/../0/000',
      '',
    ],
  ])
    assertRefused(await ask(`/log/tile/${tile}`), 404, 'NOT_FOUND');
  assertRefused(await ask('/log/tile/0/000?fresh=1'), 400, 'VALIDATION_FAILED');
  assertRefused(
    await rawAnswer(service.publicUrl, rawRequest('POST', '/log/tile/0/000', { Host: 'x' })),
    405,
    'METHOD_NOT_ALLOWED',
  );
  for (const path of ['/log/checkpoint', '/log/vkey']) assertDocumented('GET', path, await ask(path));
});

test('whoever asks for tiles without end holds up no signed call', async () => {
  const { service } = large;
  const platform = await service.platform();
  const paths = Array.from({ length: 600 }, (_, nth) => {
    const place = nth % 256;
    return `/log/tile/${tilePath({ level: 'entries', place, width: 250 + Math.floor(nth / 256) })}`;
  });
  let isOver = false;
  let unitsMax = 0;
  const watching = (async () => {
    while (!isOver) {
      unitsMax = Math.max(unitsMax, (await service.store.metrics()).requestsInFlight);
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
  const refused = tiles.filter(({ status }) => status !== 200);
  for (const { status, bytes } of refused) {
    assert.equal(status, 503);
    assert.equal(JSON.parse(bytes.toString()).code, 'UNAVAILABLE');
  }
  assert.ok(refused.length < tiles.length);
  // Two that anybody asked for, those that were signed, and the one that signs checkpoints.
  assert.ok(unitsMax <= 2 + 20 + 1, `${unitsMax} units at once`);
});
