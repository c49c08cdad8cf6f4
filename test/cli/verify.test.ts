import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { begunS, filingAt, SmallLog, salted, smallLog } from '../evidence/verifier/small-log.ts';
import { publicationOf, servePublication, writePublication } from '../evidence/verifier/small-publication.ts';
import { type ArtsealResult, runHere } from '../support/artseal.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { assertRejected } from './auditor.ts';

const log = smallLog(300);
const good = log.bundle(7);

/** A folder, and `artseal verify` on a bundle with its pin in that folder. */
function verifier(t: TestContext) {
  const folder = temporaryFolder(t);
  return {
    folder,
    pin: join(folder, 'pin'),
    /** A copy of the published log. */
    own: writePublication(join(folder, 'own'), publicationOf(log)),
    verify: (bundle: unknown, ...words: readonly string[]) =>
      verifyWith(folder, bundle, [...log.keyWords, ...words]),
  };
}

function verifyWith(folder: string, bundle: unknown, words: readonly string[]): Promise<ArtsealResult> {
  const file = join(folder, 'evidence.json');
  writeFileSync(file, JSON.stringify(bundle));
  return runHere(['verify', file, ...words], {});
}

/** A log of the same leaves, signed with another key. */
function otherLog(name = log.origin): SmallLog {
  const other = new SmallLog(name);
  other.leaves.push(...log.leaves);
  return other;
}

test('the result of a verification and of a failed one is printed, also as JSON', async (t) => {
  const { verify } = verifier(t);
  const text = (await verify(good)).printed.join('\n');
  assert.match(
    text,
    /^VERIFIED: the filing AS-2026-000007 is in the log, which dates it 2026-11-21T01:15:07Z/,
  );
  assert.match(text, /^ {2}author {5}Qi Baishi$/m);
  assert.match(text, /^log log\.example\/artworks: leaf 7 of 301$/m);
  const proven = JSON.parse((await verify(good, '--json')).printed.join());
  assert.deepEqual(
    [proven.verified, proven.number, proven.time, proven.hash, proven.record, proven.log.size, proven.pin],
    [true, 'AS-2026-000007', '2026-11-21T01:15:07Z', good.hash, JSON.parse(good.record), 301, undefined],
  );
  const { code, printed } = await verify({ ...good, hash: 'ab'.repeat(32) }, '--json');
  const refused = JSON.parse(printed.join());
  assert.deepEqual(
    [code, refused.verified, refused.kind, typeof refused.what],
    [4, false, 'HASH_MISMATCH', 'string'],
  );
});

test('what a bundle hides is printed, also as JSON', async (t) => {
  const own = smallLog(3);
  const attachments = `[{"name":"front.jpg","sha256":"${'ab'.repeat(32)}"}]`;
  const index = own.record(salted(filingAt(begunS + 4, 4), { attachments }));
  const folder = temporaryFolder(t);
  const print = async (hidden: readonly string[], ...words: readonly string[]) =>
    (await verifyWith(folder, own.saltedBundle(index, hidden), [...own.keyWords, ...words])).printed;
  const text = (await print(['attachments', 'price'])).join('\n');
  assert.match(text, /^ {2}caller {5}Gallery One$/m);
  assert.match(text, /^ {2}hidden {5}attachments, price$/m);
  assert.doesNotMatch(text, /128000000|front\.jpg/);
  const [json, whole] = [await print(['price'], '--json'), await print([], '--json')];
  const { verified, hidden, record, hash } = JSON.parse(json.join());
  assert.deepEqual([verified, hidden, record.price, hash], [true, ['price'], undefined, undefined]);
  assert.equal(record.attachments, attachments);
  assert.equal('hidden' in JSON.parse(whole.join()), false);
});

test('verify pins the first checkpoint, and moves the pin only forward and with a proof', async (t) => {
  const { verify, pin, own } = verifier(t);
  const older = log.bundle(7, 100);
  const words = ['--pin', pin, '--log', own];
  const first = await verify(older, ...words);
  assert.deepEqual([first.code, first.errors, readFileSync(pin, 'utf8')], [0, [], log.checkpoint(100)]);
  assert.match(
    first.printed.join('\n'),
    /^the log continues it, and has 301 leaves now\npinned as the first/m,
  );
  const grown = await verify(good, ...words);
  assert.deepEqual([grown.code, grown.errors], [0, []]);
  assert.match(grown.printed.join('\n'), /^agrees with the pin, and replaces it$/m);
  assert.equal(readFileSync(pin, 'utf8'), log.checkpoint(301));
  // An older bundle is still valid, and does not move the pin back.
  const again = await verify(older, ...words);
  assert.deepEqual([again.code, readFileSync(pin, 'utf8')], [0, log.checkpoint(301)], again.errors.join());
  assert.match(again.printed.join('\n'), /^agrees with the pin$/m);
  const json = JSON.parse((await verify(older, ...words, '--json')).printed.join());
  assert.deepEqual([json.logSize, json.pin], [301, { file: pin, isMoved: false, isCompared: true }]);
});

test('a log that is shorter than the bundle or the pin went back', async (t) => {
  const { verify, pin, folder, own } = verifier(t);
  const cutOff = writePublication(join(folder, 'cut'), publicationOf(log, 100));
  const wentBack =
    /FORKED.*the log has 100 leaves, and had 301 in the checkpoint of the bundle: it went back/;
  assertRejected(await verify(good, '--log', cutOff, '--pin', pin), 7, wentBack);
  assert.ok(!existsSync(pin));
  assert.equal((await verify(good, '--log', own, '--pin', pin)).code, 0);
  const older = log.bundle(7, 100);
  assertRejected(
    await verify(older, '--log', cutOff, '--pin', pin),
    7,
    /FORKED.*the log has 100 leaves, and had 301 in the checkpoint of the pin/,
  );
  // Without a pin nothing contradicts the older bundle.
  assert.equal((await verify(older, '--log', cutOff)).code, 0);
});

test('a log whose checkpoint no given key signed proves nothing', async (t) => {
  const { verify, folder } = verifier(t);
  const copy = writePublication(join(folder, 'log'), publicationOf(otherLog()));
  assertRejected(await verify(good, '--log', copy), 6, /no given key signed the checkpoint of the log/);
});

test('verify detects a log that shows another tree than the pinned one', async (t) => {
  const { verify, pin, folder, own } = verifier(t);
  assert.equal((await verify(good, '--pin', pin, '--log', own)).code, 0);
  // The same leaves but one, signed by the same key.
  const forked = new SmallLog(log.origin, log.keys);
  forked.leaves.push(...log.leaves);
  const other = forked.leaves.length - 1;
  forked.leaves.pop();
  assert.equal(forked.record(filingAt(begunS + 300, 300, { author: 'Zhang Daqian' })), other);
  const bundle = forked.bundle(other);
  const twoTrees = /FORKED.*two different trees of 301 leaves/;
  assertRejected(await verify(bundle, '--log', own), 7, twoTrees);
  const copy = writePublication(join(folder, 'forked'), publicationOf(forked));
  assertRejected(await verify(bundle, '--pin', pin, '--log', copy), 7, twoTrees);
  // With one more leaf the log cannot prove that it continues the pin.
  forked.record(filingAt(begunS + 301, 301));
  writePublication(copy, publicationOf(forked));
  const rewritten = await verify(forked.bundle(301), '--pin', pin, '--log', copy);
  assertRejected(rewritten, 7, /FORKED.*does not begin with the one of 301 of the pin/);
  assert.equal(readFileSync(pin, 'utf8'), log.checkpoint(301));
});

test('a log with another name is another log', async (t) => {
  const { verify, pin, folder, own } = verifier(t);
  assert.equal((await verify(good, '--pin', pin, '--log', own)).code, 0);
  const next = otherLog(`${log.origin}/2`);
  const bundle = { ...good, proof: next.proof(7) };
  const copy = writePublication(join(folder, 'next'), publicationOf(next));
  const words = [...next.keyWords, '--pin', pin, '--log', copy];
  assertRejected(
    await verifyWith(folder, bundle, words),
    7,
    /the pin is of the log log\.example\/artworks, this/,
  );
});

test('a damaged pin, or one that no given key signed, is an error and not a fork', async (t) => {
  const { verify, pin, own } = verifier(t);
  for (const content of [
    '',
    'nonsense',
    log.checkpoint().replace('\n301\n', '\n300\n'),
    otherLog().checkpoint(),
  ]) {
    writeFileSync(pin, content);
    const unusable = /^artseal: the pin file .*pin cannot be used, since /;
    assertRejected(await verify(good, '--pin', pin, '--log', own), 1, unusable);
    assert.equal(readFileSync(pin, 'utf8'), content);
  }
});

test('verify compares the pin over HTTP, and moves no pin if the log cannot be read', async (t) => {
  const { verify, pin } = verifier(t);
  writeFileSync(pin, log.checkpoint(200));
  const publication = publicationOf(log);
  const { url } = await servePublication(t, publication);
  for (const lack of ['tile/0', 'checkpoint']) {
    for (const path of publication.keys()) if (path.startsWith(lack)) publication.delete(path);
    const lacking = await verify(good, '--pin', pin, '--log', url);
    assertRejected(lacking, 1, /the bundle itself is valid, but the log could not prove/);
  }
  for (const [path, bytes] of publicationOf(log)) publication.set(path, bytes);
  const { code, errors } = await verify(good, '--pin', pin, '--log', url);
  assert.deepEqual([code, readFileSync(pin, 'utf8')], [0, log.checkpoint(301)], errors.join());
});

test('an error says that the file is missing, a folder, too long, or no text', async (t) => {
  const { folder } = verifier(t);
  const file = join(folder, 'bundle');
  const run = () => runHere(['verify', file, ...log.keyWords], {});
  assertRejected(await run(), 1, /bundle does not exist/);
  mkdirSync(file);
  assertRejected(await run(), 1, /bundle is a folder, not a file/);
  rmdirSync(file);
  writeFileSync(file, Buffer.alloc(5 * 2 ** 20, ' '));
  assertRejected(await run(), 3, /MALFORMED.*longer than/);
  writeFileSync(file, Buffer.from(JSON.stringify(good).replace('Qi Baishi', 'Qi\u00ff'), 'latin1'));
  assertRejected(await run(), 3, /MALFORMED.*UTF-8/);
});

test('--key takes several keys, a line each', async (t) => {
  const { folder } = verifier(t);
  const [, vkey] = log.keyWords;
  const [, other] = otherLog('log.example/other').keyWords;
  const { code, errors } = await verifyWith(folder, good, ['--key', `${other}\n${vkey}\n`]);
  assert.equal(code, 0, errors.join());
});

test('an error quotes the beginning of a file that is no bundle', async (t) => {
  const { folder } = verifier(t);
  const file = join(folder, 'bundle');
  for (const [content, message] of [
    ['', 'the file is empty'],
    ['<!doctype html><title>502', 'it begins with "<!doctype html><titl"'],
    [`\ufeff${JSON.stringify(good)}`, 'it begins with a byte order mark'],
    [JSON.stringify([good]), 'it begins with "['],
  ] as const) {
    writeFileSync(file, content);
    const result = await runHere(['verify', file, ...log.keyWords], {});
    assertRejected(result, 3, /\(MALFORMED\): this is not an evidence bundle/);
    assert.ok(result.errors.join().includes(message), result.errors.join());
  }
});
