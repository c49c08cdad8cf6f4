import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unavailable } from '../../../src/domain/reason.ts';
import { createPublicLog, createTileReader, parseTile, tilePath } from '../../../src/evidence/log/tiles.ts';
import type { Command, Execute } from '../../../src/store/store.ts';
import { hashOfLeaf, rootOf } from '../verifier/small-log.ts';

const size = 65_536 + 300;
const leaves = Array.from({ length: size }, (_, index) => `leaf ${index} `.padEnd(160, 'x'));
const leafHashes = leaves.map(hashOfLeaf);
const level1 = Array.from({ length: 257 }, (_, n) => rootOf(leafHashes.slice(n * 256, (n + 1) * 256)));
const level2 = [rootOf(level1.slice(0, 256))];
const levels = [leafHashes, level1, level2] as const;

/** A store with these leaves and a kept checkpoint of so many, and how many tiles it read. */
function createLeafStore(kept = 0) {
  const count = { of: 0 };
  const execute = (async (command: Command) => {
    if (command.kind === 'GetLog') return { newest: kept > 0 ? { size: kept, note: 'kept' } : undefined };
    count.of += 1;
    if (command.kind === 'ReadLeaves') return leaves.slice(command.index, command.index + command.width);
    assert.ok(command.kind === 'ReadSubtrees');
    const { level, place, width } = command;
    return Buffer.concat(levels[level / 8]?.slice(place, place + width) ?? []);
  }) as Execute;
  return { count, execute };
}

/** Reads the tiles of a log with so many published leaves. */
function readerOf(published: number, { execute } = createLeafStore()) {
  const current = () => ({ origin: '', size: published, root: new Uint8Array(), note: '' });
  return createTileReader({ execute, publication: { current }, isShared: true });
}

/** The entries of a bundle. */
function entriesIn(bytes: Uint8Array): string[] {
  const entries: string[] = [];
  const buffer = Buffer.from(bytes);
  for (let at = 0; at < buffer.length; ) {
    const end = at + 2 + buffer.readUInt16BE(at);
    entries.push(buffer.toString('utf8', at + 2, end));
    at = end;
  }
  return entries;
}

test('a path names a tile as C2SP tlog-tiles defines', () => {
  for (const [path, tile] of [
    ['0/000', { level: 0, place: 0, width: 256 }],
    ['0/999', { level: 0, place: 999, width: 256 }],
    ['0/x001/000', { level: 0, place: 1_000, width: 256 }],
    ['2/x001/x234/067', { level: 2, place: 1_234_067, width: 256 }],
    ['63/000.p/1', { level: 63, place: 0, width: 1 }],
    ['entries/x001/x234/067.p/255', { level: 'entries', place: 1_234_067, width: 255 }],
  ] as const) {
    assert.deepEqual(parseTile(path), tile, path);
    assert.equal(tilePath(tile), path);
  }
});

test('no other form is the path of a tile', () => {
  for (const path of [
    ...[
      '',
      '0',
      '0/',
      '/0/000',
      '0/000/',
      '0//000',
      '0/0',
      '0/00',
      '0/0000',
      '0/1',
      '0/-01',
      '0/+01',
      '0/ 01',
    ],
    ...['00/000', '01/000', '64/000', '100/000', '-1/000', '0x0/000', 'Entries/000', 'entries', 'data/000'],
    ...['0/x000', '0/x000/001', '0/x000/x000/001', '0/001/002', '0/x001/x002', '0/X001/002', '0/x001/02'],
    ...['0/x001/0002', '0/x01/002', '0/x001//002', '0/x001/002/003'],
    ...['0/000.p', '0/000.p/', '0/000.p/0', '0/000.p/256', '0/000.p/257', '0/000.p/999', '0/000.p/1000'],
    ...['0/000.p/01', '0/000.p/1/', '0/000.p/-1', '0/000.p/1e2', '0/000.P/1', '0/000.p/1.p/1', '0/000/p/1'],
    ...[
      '0/%30%30%30',
      '0/00%30',
      '0/000%2ep/1',
      '0%2f000',
      '0/000\0',
      '0/000\n',
      '0/٠٠٠',
      '0/000;1',
      '0/000#',
    ],
    ...['0/x999/x999/x999/x999/x999/x999/999', `0/${'x001/'.repeat(3_000)}001`, '0/999999999999'],
  ])
    assert.equal(parseTile(path), undefined, path);
});

for (const published of [1, 255, 256, 257, 512, 65_535, 65_536, size]) {
  test(`of ${published} published leaves there are these tiles, and no more`, async () => {
    const readTile = readerOf(published);
    for (const [level, hashes] of levels.entries()) {
      const whole = Math.floor(published / 256 ** level);
      const [full, width] = [Math.floor(whole / 256), whole % 256];
      const last = full - 1;
      if (full > 0) {
        const expected = Buffer.concat(hashes.slice(last * 256, full * 256));
        assert.deepEqual(await readTile(tilePath({ level, place: last, width: 256 })), expected);
        assert.equal(expected.length, 8_192);
      }
      assert.equal(await readTile(tilePath({ level, place: full, width: 256 })), undefined);
      if (width > 0) {
        const partial = await readTile(tilePath({ level, place: full, width }));
        assert.deepEqual(partial, Buffer.concat(hashes.slice(full * 256, full * 256 + width)));
      }
      if (width < 255)
        assert.equal(await readTile(tilePath({ level, place: full, width: width + 1 })), undefined);
    }
    for (const level of [3, 4, 62, 63])
      assert.equal(await readTile(tilePath({ level, place: 0, width: 1 })), undefined);
    const [full, width] = [Math.floor(published / 256), published % 256];
    assert.equal(await readTile(tilePath({ level: 'entries', place: full, width: width + 1 })), undefined);
    const [place, had] = width > 0 ? [full, width] : [full - 1, 256];
    const entries = await readTile(tilePath({ level: 'entries', place, width: had }));
    assert.deepEqual(entriesIn(entries ?? assert.fail()), leaves.slice(place * 256, place * 256 + had));
  });
}

test('nothing is published before the first checkpoint', async () => {
  const readTile = createTileReader({
    ...createLeafStore(),
    publication: { current: () => undefined },
    isShared: false,
  });
  assert.equal(await readTile('0/000.p/1'), undefined);
});

test('concurrent and later readers of a tile share one read of the store', async () => {
  const store = createLeafStore();
  const { count } = store;
  const readTile = readerOf(size, store);
  const together = await Promise.all(Array.from({ length: 20 }, () => readTile('entries/000')));
  assert.equal(new Set(together).size, 1);
  assert.equal(await readTile('entries/000'), together[0]);
  assert.equal(count.of, 1);
});

test('the cache has a limit in bytes, and drops the least recently used tile first', async () => {
  const store = createLeafStore();
  const { count } = store;
  const readTile = readerOf(size, store);
  const read = (place: number, width = 256) => readTile(tilePath({ level: 'entries', place, width }));
  let bytes = (await read(0))?.length ?? 0;
  for (const width of [256, 255])
    for (let place = 1; place < 256; place += 1) {
      bytes += (await read(place, width))?.length ?? 0;
      await read(1);
    }
  assert.ok(bytes > 20 * 1_048_576);
  const before = count.of;
  await read(1);
  assert.equal(count.of, before);
  await read(0);
  assert.equal(count.of, before + 1);
});

test('a published tile that the store lacks is an error, and the next call reads again', async () => {
  const readTile = readerOf(size + 300);
  const place = Math.floor(size / 256);
  for (let time = 0; time < 2; time += 1) {
    await assert.rejects(readTile(`0/${place}.p/200`), /lacks tile 0\/257\.p\/200, which was published/);
    await assert.rejects(readTile(`entries/${place}.p/200`), /lacks tile/);
  }
});

test('a cached short tile has a buffer of its own', async () => {
  const readTile = readerOf(size);
  for (const path of ['0/000.p/1', '1/000.p/2', 'entries/000.p/1']) {
    const bytes = await readTile(path);
    assert.equal(bytes?.buffer.byteLength, bytes?.length, path);
  }
});

test('the newest checkpoint of all instances is served, or that of this instance if the store cannot be used', async () => {
  const publication = {
    current: () => ({ origin: '', size: 600, root: new Uint8Array(), note: 'own' }),
    verifierKeys: () => [],
  };
  const read = (isShared: boolean, { execute } = createLeafStore(700)) =>
    createPublicLog({ execute, publication, isShared }).checkpoint();
  const away = async () => {
    throw unavailable('The store is away.');
  };
  assert.equal(await read(true), 'kept');
  assert.equal(await read(true, createLeafStore(600)), 'own');
  assert.equal(await read(true, { ...createLeafStore(700), execute: away }), 'own');
  assert.equal(await read(false), 'own');
});

test('a tile is served that another instance has published', async () => {
  const read = readerOf(600, createLeafStore(700));
  assert.equal(entriesIn((await read('entries/002.p/188')) ?? assert.fail()).length, 188);
  assert.equal(await read('entries/002.p/189'), undefined);
});
