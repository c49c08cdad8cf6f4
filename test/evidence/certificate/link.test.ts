import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { deflateRawSync } from 'node:zlib';
import { bundleInLink } from '../../../build/verify-page/link.ts';
import { linkTo } from '../../../src/evidence/certificate/link.ts';

const url = 'https://registry.example/verify';
const vkey = 'registry.example/log+1f6029b1+AddamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea';
const lengthMax = 1_000_000;

/** The bundle that the page reads from a link. */
async function read(link: string): Promise<unknown> {
  const linked = await bundleInLink(link.slice(url.length), lengthMax);
  if (linked === undefined) return undefined;
  assert.equal(linked.key, vkey);
  return JSON.parse(Buffer.from(linked.bytes).toString());
}

const disclosed = (members: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(members).map(([name, value]) => [name, { salt: '00', value }]));
const long = (bytes: number) => randomBytes(bytes).toString('hex');

test('a link has the bundle without its time stamp, and the key', async () => {
  const bundle = { format: 'artseal-evidence', hash: 'ab', disclosed: disclosed({ author: '齐白石' }) };
  const { link, omitted } = linkTo(url, { ...bundle, timeStamp: { token: long(5_000) } }, vkey);
  assert.deepEqual([await read(link), omitted], [bundle, []]);
});

test('of a long bundle, a link leaves out the longest members and the evidence hash', async () => {
  const kept = disclosed({ author: 'Qi Baishi', price: '5' });
  const members = { ...kept, ...disclosed({ condition: long(1_700), material: long(1_600) }) };
  const { link, omitted } = linkTo(url, { hash: 'ab', disclosed: members }, vkey);
  assert.deepEqual(omitted, ['condition', 'material']);
  assert.deepEqual(await read(link), { disclosed: kept });
  assert.ok(link.length <= 2_300);
});

test('the evidence hash stays if only attachments are left out', async () => {
  const kept = disclosed({ author: 'Qi Baishi' });
  const members = { ...kept, ...disclosed({ attachments: long(2_000) }) };
  const { link, omitted } = linkTo(url, { hash: 'ab', disclosed: members }, vkey);
  assert.deepEqual([omitted, await read(link)], [['attachments'], { hash: 'ab', disclosed: kept }]);
});

test('a bundle that does not fit is left out', async () => {
  const whole = { hash: long(3_000), record: long(3_000) };
  assert.deepEqual(linkTo(url, whole, vkey), { link: url, omitted: [] });
  assert.equal(await read(url), undefined);
});

test('the page rejects a link that it cannot read, and one with a very long bundle', async () => {
  const packed = (text: string) => deflateRawSync(text).toString('base64url');
  for (const bundle of ['%%%', 'AAAA', packed('{}').slice(0, -1), packed(' '.repeat(lengthMax + 1))])
    await assert.rejects(bundleInLink(`#bundle=${bundle}&key=k`, lengthMax), bundle.slice(0, 9));
  for (const fragment of ['#', '#bundle=AAAA', '#key=k', '#top'])
    assert.equal(await bundleInLink(fragment, lengthMax), undefined);
});
