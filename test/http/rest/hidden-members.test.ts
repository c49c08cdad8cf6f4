import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readVerifierKey, verifyBundle } from '../../../src/evidence/verifier/index.ts';
import { fileArtwork, openEscrow, releaseEscrow } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { fileScope } from '../../support/file-scope.ts';
import { assertDocumented } from '../../support/openapi.ts';
import { publishAll } from '../../support/publication.ts';
import { rawAnswer, rawRequest } from '../../support/raw-http.ts';
import { assertRejected } from '../../support/rejected.ts';
import { artwork } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { send } from '../../support/signed-request.ts';

const clock = createManualClock();
const service = await startService(fileScope, { clock });
const platform = await service.platform();
const attachments = [{ name: '正面.jpg', sha256: 'ab'.repeat(32) }];

/** Files an artwork; it is published. */
async function file(others: object = { attachments }) {
  const { json } = await fileArtwork(service, platform, { body: JSON.stringify({ ...artwork, ...others }) });
  await publishAll(service, clock);
  return json;
}

const evidencePath = (filingNo: string) => `/api/v1/filing/${filingNo}/evidence`;

const get = (filingNo: string, query = '') =>
  send(service.publicUrl, platform, { target: `${evidencePath(filingNo)}${query}` });

const share = (filingNo: string, terms: object) => {
  const target = `${evidencePath(filingNo)}/links`;
  return send(service.publicUrl, platform, { target, body: JSON.stringify(terms) });
};

const open = (path: string) => rawAnswer(service.publicUrl, rawRequest('GET', path, { Host: 'x' }));

/** Verifies a bundle with the published key. */
async function proven(bundle: object) {
  const keys = [readVerifierKey((await open('/log/vkey')).text.trimEnd())];
  const verdict = verifyBundle(JSON.stringify(bundle), { keys });
  assert.ok(verdict.isProven, JSON.stringify(verdict));
  const { record, hash, index } = verdict.proven;
  return { members: Object.fromEntries(record.members), hidden: record.hidden, hash, index };
}

const hideable = ['attachments', 'author', 'condition', 'era', 'material', 'price', 'size'];
const priceless = hideable.filter((name) => name !== 'price').join(',');

for (const shown of [['author'], ['size', 'era'], ['attachments'], priceless.split(',')])
  test(`a bundle that discloses ${shown} is proven, and hides all others`, async () => {
    const { filingNo, timestamp } = await file();
    const { status, json } = await get(filingNo, `?disclose=${shown}`);
    assert.equal(status, 200);
    const { members, hidden, hash } = await proven(json);
    const all: Record<string, unknown> = { ...artwork, attachments: JSON.stringify(attachments) };
    const disclosed = Object.fromEntries(shown.map((name) => [name, all[name]]));
    assert.deepEqual(members, { caller: platform.caller, filingNo, timestamp, ...disclosed });
    assert.deepEqual([...hidden, ...shown].sort(), hideable);
    assert.equal(hash, undefined);
  });

test('a bundle that hides only attachments has the evidence hash', async () => {
  const { filingNo, hash } = await file();
  const { json } = await get(filingNo, '?disclose=price,size,era,author,material,condition');
  const found = await proven(json);
  assert.deepEqual([found.hidden, found.hash, json.hash], [['attachments'], hash, hash]);
});

test('nothing in a bundle without the price lets anyone test a price', async () => {
  const { filingNo, hash } = await file();
  const whole = (await get(filingNo)).json;
  const { text, json } = await get(filingNo, `?disclose=${priceless}`);
  assert.equal((await proven(whole)).index, (await proven(json)).index);
  assert.deepEqual([json.record, json.leaf], [whole.record, whole.leaf]);
  assert.deepEqual(Object.keys(json).sort(), ['disclosed', 'format', 'leaf', 'proof', 'record', 'version']);
  const { salt, value } = whole.disclosed.price;
  assert.equal(value, String(artwork.price));
  const bytes = [Buffer.from(hash, 'hex'), Buffer.from(salt, 'hex'), Buffer.from(value)];
  const base64 = bytes.map((secret) => secret.toString('base64').replace(/=+$/, ''));
  for (const secret of [hash, salt, value, ...base64]) assert.ok(!text.includes(secret), secret);
  const { price: _, ...others } = whole.disclosed;
  assert.deepEqual(json.disclosed, others);
  const salts = Object.values<{ salt: string }>(whole.disclosed).map((member) => member.salt);
  assert.equal(new Set(salts).size, hideable.length, 'each member has its own salt');
  const again = (await get((await file()).filingNo)).json.disclosed;
  for (const [name, { salt: other }] of Object.entries<{ salt: string }>(again))
    assert.ok(!salts.includes(other), `${name} of the same artwork has another salt`);
});

test('a filing without attachments can be proven with and without its price, and names no attachments', async () => {
  const { filingNo, hash } = await file({});
  const whole = await get(filingNo);
  assert.equal((await proven(whole.json)).hash, hash);
  assert.doesNotMatch(whole.text, /attachments/);
  const some = await get(filingNo, `?disclose=${priceless}`);
  assert.deepEqual((await proven(some.json)).hidden, ['price']);
  const none = await get(filingNo, '?disclose=attachments');
  assert.deepEqual(none.json.disclosed, {});
  assert.equal((await proven(none.json)).hidden.length, 6);
});

/** The message for a list that is not empty. */
const rule = /^disclose must name some of author,condition,era,material,price,size,attachments, each once$/;

const bad: Readonly<Record<string, string>> = {
  'an unknown member': 'author,owner',
  'a member that is never hidden': 'caller',
  'a member twice': 'author,era,author',
  nothing: '',
  'a comma at the end': 'author,',
  'a space': 'author, era',
  'another case': 'Author',
  'an inherited name': 'constructor',
};
for (const [what, disclose] of Object.entries(bad))
  test(`disclose with ${what} is rejected`, async () => {
    const { filingNo } = await file();
    const message = disclose === '' ? /^disclose must / : rule;
    const query = `?disclose=${encodeURIComponent(disclose)}`;
    assertRejected(await get(filingNo, query), 400, 'VALIDATION_FAILED', message);
    assertRejected(await share(filingNo, { disclose }), 400, 'VALIDATION_FAILED', message);
  });

test('a transfer hides nothing', async () => {
  const { filingNo } = await file();
  const { escrowId } = (await openEscrow(service, platform, filingNo)).json;
  assert.equal((await releaseEscrow(service, platform, escrowId)).status, 200);
  await publishAll(service, clock);
  const message = /^disclose must be left out: only a filing with a record of version 2 can hide members$/;
  const answer = await get(filingNo, '?sequence=2&disclose=author');
  assertRejected(answer, 400, 'VALIDATION_FAILED', message);
  const shared = await share(filingNo, { sequence: 2, disclose: 'author' });
  assertRejected(shared, 400, 'VALIDATION_FAILED', message);
  assert.equal((await get(filingNo, '?sequence=2')).json.version, 1);
});

test('a link returns what it discloses, and is listed with it', async () => {
  const { filingNo } = await file();
  const shared = (await share(filingNo, { disclose: priceless })).json;
  const whole = (await share(filingNo, {})).json;
  const opened = await open(shared.path);
  assertDocumented('GET', shared.path, opened);
  const { json } = await get(filingNo, `?disclose=${priceless}`);
  for (const member of ['record', 'disclosed', 'leaf', 'version'])
    assert.deepEqual(opened.json[member], json[member], member);
  assert.deepEqual((await proven(opened.json)).hidden, ['price']);
  assert.deepEqual((await proven((await open(whole.path)).json)).hidden, []);
  const target = `${evidencePath(filingNo)}/links`;
  const { links } = (await send(service.publicUrl, platform, { target })).json;
  const disclosed = links.map(({ linkId, disclose }: Record<string, string>) => [linkId, disclose]);
  assert.deepEqual(disclosed, [
    [whole.linkId, undefined],
    [shared.linkId, priceless],
  ]);
});
