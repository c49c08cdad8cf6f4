import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiCredentials } from '../../../src/client/sign.ts';
import { perform } from '../../../src/store/store.ts';
import { proven } from '../../evidence/log/outsider.ts';
import { tester } from '../../support/audit-log.ts';
import { fileArtwork, openEscrow, releaseEscrow } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { fileScope } from '../../support/file-scope.ts';
import { assertDocumented } from '../../support/openapi.ts';
import { publishAll } from '../../support/publication.ts';
import { rawAnswer, rawRequest } from '../../support/raw-http.ts';
import { assertRejected } from '../../support/rejected.ts';
import { artwork } from '../../support/samples.ts';
import { startService, type TestService } from '../../support/service.ts';
import { type RestAnswer, send } from '../../support/signed-request.ts';

const clock = createManualClock();
const service = await startService(fileScope, { clock });
const platform = await service.platform();

const evidencePath = (filingNo: string) => `/api/v1/filing/${filingNo}/evidence`;

function askEvidence(filingNo: string, query = '', by: ApiCredentials = platform): Promise<RestAnswer> {
  return send(service.publicUrl, by, { target: `${evidencePath(filingNo)}${query}` });
}

function share(filingNo: string, terms: object = {}, by: ApiCredentials = platform) {
  const target = `${evidencePath(filingNo)}/links`;
  return send(service.publicUrl, by, { target, body: JSON.stringify(terms) });
}

const open = (path: string, { publicUrl }: Pick<TestService, 'publicUrl'> = service) =>
  rawAnswer(publicUrl, rawRequest('GET', path, { Host: 'x' }));

/** Files an artwork; it is published. */
async function file(by: ApiCredentials = platform): Promise<RestAnswer['json']> {
  const { json } = await fileArtwork(service, by);
  await publishAll(service, clock);
  return json;
}

/** Files an artwork and sells it; both are published. */
async function sell(): Promise<string> {
  const { filingNo } = await file();
  const { escrowId } = (await openEscrow(service, platform, filingNo)).json;
  assert.equal((await releaseEscrow(service, platform, escrowId)).status, 200);
  await publishAll(service, clock);
  return filingNo;
}

/** The published verifier key. */
const vkey = async () => (await open('/log/vkey')).text.trimEnd();

test('the bundle and the verifier key prove a filing', async () => {
  const { filingNo, hash, timestamp } = await file();
  const { status, json } = await askEvidence(filingNo);
  assert.equal(status, 200);
  const { record, leaf, index, size } = proven(json, await vkey());
  assert.deepEqual(record, { ...artwork, filingNo, timestamp, caller: platform.caller });
  assert.equal(json.hash, hash);
  const { commitment, ...rest } = leaf;
  assert.match(String(commitment), /^[0-9a-f]{64}$/);
  const time = Date.parse(timestamp) / 1000;
  assert.deepEqual(rest, { kind: 'FILING', number: filingNo, sequence: 1, time, version: 1 });
  assert.ok(index < size);
});

test('a filing with characters that are rejected today can still be read and proven', async () => {
  const author = 'Qi \u202eihsiaB\u200b';
  const by = await service.execute({ kind: 'FindKey', keyId: platform.keyId });
  const atMs = clock.nowMs();
  const at = { atMs, timestamp: `${new Date(atMs).toISOString().slice(0, 19)}+00:00` };
  const old = { ...artwork, author, price: BigInt(artwork.price) };
  const { filingNo } = await service.execute({ kind: 'FileArtwork', artwork: old, at, by });
  await publishAll(service, clock);
  const read = await send(service.publicUrl, platform, { target: `/api/v1/filing/${filingNo}` });
  assert.equal(read.json.author, author);
  const { record } = proven((await askEvidence(filingNo)).json, await vkey());
  assert.equal(record.author, author);
});

test('a transfer is proven by its sequence', async () => {
  const filingNo = await sell();
  const { record, leaf } = proven((await askEvidence(filingNo, '?sequence=2')).json, await vkey());
  const { at } = record;
  assert.match(String(at), /^\d{4}-\d\d-\d\d$/);
  assert.deepEqual(record, { at, event: 'TRANSFER', filingNo, sequence: 2 });
  assert.deepEqual([leaf.kind, leaf.number, leaf.sequence], ['TRANSFER', filingNo, 2]);
  const first = await askEvidence(filingNo, '?sequence=1');
  assert.equal(proven(first.json, await vkey()).leaf.kind, 'FILING');
});

test('a request that names no record is rejected with the reason', async () => {
  const { filingNo } = await file();
  for (const query of ['?sequence=0', '?sequence=10002', '?sequence=x'])
    assertRejected(await askEvidence(filingNo, query), 400, 'VALIDATION_FAILED', /^sequence /);
  assertRejected(await askEvidence(filingNo, '?record=2'), 400, 'VALIDATION_FAILED', /^record /);
  assertRejected(await askEvidence(filingNo, '?sequence=2'), 404, 'FILING_NOT_FOUND', /sequence/);
  assertRejected(await askEvidence('AS-1999-000001'), 404, 'FILING_NOT_FOUND');
  for (const [terms, field] of [
    [{ sequence: 0 }, /^sequence must be an integer from 1 to 10001$/],
    [{ expiresInSeconds: 59 }, /^expiresInSeconds must be an integer from 60 to 7776000$/],
    [{ expires: 60 }, /^expires /],
  ] as const)
    assertRejected(await share(filingNo, terms), 400, 'VALIDATION_FAILED', field);
  assertRejected(await share(filingNo, { sequence: 2 }), 404, 'FILING_NOT_FOUND', /sequence/);
  assertRejected(await share('AS-1999-000001'), 404, 'FILING_NOT_FOUND');
});

test('a link returns the same evidence as a file, and no log has its token', async () => {
  const filingNo = await sell();
  const shared = await share(filingNo, { sequence: 2, expiresInSeconds: 60 });
  const { path, expiresAt } = shared.json;
  assert.deepEqual(Object.keys(shared.json).sort(), ['expiresAt', 'linkId', 'path']);
  assert.match(path, /^\/evidence\/[A-Za-z0-9_-]{80}$/);
  const leftMs = Date.parse(expiresAt) - clock.nowMs();
  assert.ok(leftMs > 0 && leftMs <= 60_000, expiresAt);
  const opened = await open(path);
  assert.equal(proven(opened.json, await vkey()).leaf.sequence, 2);
  assert.equal(opened.json.salt, (await askEvidence(filingNo, '?sequence=2')).json.salt);
  assert.equal(
    opened.headers['content-disposition'],
    `attachment; filename="artseal-evidence-${filingNo}-2.json"`,
  );
  assertDocumented('GET', path, opened);
  assert.ok(!service.logLines.join('').includes(path.slice('/evidence/'.length)));
  const week = await share(filingNo);
  const days = (Date.parse(week.json.expiresAt) - clock.nowMs()) / 86_400_000;
  assert.ok(days > 6.9 && days <= 7);
});

test('an altered link opens nothing', async () => {
  const { filingNo } = await file();
  const { path } = (await share(filingNo)).json;
  const bytes = Buffer.from(path.slice('/evidence/'.length), 'base64url');
  const altered = bytes.toJSON().data.map((byte, at) => {
    const other = Buffer.from(bytes);
    other[at] = byte ^ 1;
    return other.toString('base64url');
  });
  for (const token of [
    ...altered.filter((_, at) => at % 20 === 0),
    altered.at(-1),
    '',
    `${path}=`,
    'x'.repeat(9_000),
  ])
    assertRejected(await open(`/evidence/${token}`), 404, 'NOT_FOUND', /expired/);
  assert.equal((await open(path)).status, 200);
});

test('a link is listed without its token, and a revoked one is like an unknown one', async () => {
  const { filingNo } = await file();
  const [kept, gone] = [(await share(filingNo)).json, (await share(filingNo)).json];
  const target = `${evidencePath(filingNo)}/links`;
  const listed = async (by = platform) => send(service.publicUrl, by, { target });
  const { text, json } = await listed();
  assert.deepEqual(
    json.links.map(({ linkId }: { linkId: string }) => linkId),
    [gone.linkId, kept.linkId],
  );
  assert.doesNotMatch(text, /evidence\//);
  const revoke = (linkId: string, by = platform) =>
    send(service.publicUrl, by, { method: 'DELETE', target: `${target}/${linkId}` });
  const other = await service.platform();
  assertRejected(await revoke(gone.linkId, other), 404, 'LINK_NOT_FOUND');
  assertRejected(await listed(other), 404, 'FILING_NOT_FOUND');
  for (const unknown of ['el_0123456789abcdef', 'x'])
    assertRejected(await revoke(unknown), 404, 'LINK_NOT_FOUND');
  assert.equal((await open(gone.path)).status, 200);
  for (let times = 0; times < 2; times += 1) assert.equal((await revoke(gone.linkId)).text, '{}');
  const [revoked, unknown] = [await open(gone.path), await open('/evidence/unknown')];
  assert.deepEqual(
    [revoked.status, revoked.json.code, revoked.json.message],
    [unknown.status, unknown.json.code, unknown.json.message],
  );
  assert.equal((await open(kept.path)).status, 200);
  const [first, second] = (await listed()).json.links;
  assert.ok(first.revokedAt !== undefined && second.revokedAt === undefined);

  const page = { from: undefined, size: 9 };
  const { items } = await service.execute({ kind: 'ListAuditLog', sinceS: undefined, page });
  assert.deepEqual(
    items
      .filter(({ subject }) => subject === gone.linkId)
      .map(({ actor, action, subject }) => [actor, action, subject]),
    [
      [`platform ${platform.caller}`, 'evidence revoke-link', gone.linkId],
      [`platform ${platform.caller}`, 'evidence link', gone.linkId],
    ],
  );
  assert.ok(!JSON.stringify(items).includes(gone.path.slice('/evidence/'.length)));
});

test('an expired link opens nothing, and the evidence of an erased filing says that it was erased', async (t) => {
  const past = createManualClock(Date.parse('2020-03-01T12:00:00Z'));
  const old = await startService(t, { clock: past });
  const by = await old.platform();
  const call = (target: string, body?: string) =>
    send(old.publicUrl, by, {
      ...{ target, timestamp: String(Math.floor(past.nowMs() / 1000)) },
      ...(body !== undefined && { body }),
    });
  const { filingNo } = (await call('/api/v1/filing', JSON.stringify(artwork))).json;
  await publishAll(old, past);
  const target = `${evidencePath(filingNo)}/links`;
  const short = (await call(target, '{"expiresInSeconds":60}')).json;
  const long = (await call(target, '{"expiresInSeconds":7776000}')).json;
  assert.equal((await open(short.path, old)).status, 200);
  past.leap(Date.parse(short.expiresAt) - 1 - past.nowMs());
  assert.equal((await open(short.path, old)).status, 200);
  past.advance(1);
  assertRejected(await open(short.path, old), 404, 'NOT_FOUND', /expired/);
  assert.equal((await open(long.path, old)).status, 200);
  assertRejected(await open(long.path), 404, 'NOT_FOUND', /expired/);

  const now = { ...tester, atS: Math.floor(Date.parse('2025-04-01T12:00:00Z') / 1_000) };
  await perform(old.store, { kind: 'AcceptClock', by: now });
  const erased = await perform(old.store, { kind: 'EraseFilings', by: now, filingNos: [filingNo] });
  assert.equal(erased.length, 1);
  for (const answer of [
    await call(evidencePath(filingNo)),
    await call(target, '{}'),
    await open(long.path, old),
  ])
    assertRejected(answer, 404, 'FILING_NOT_FOUND', /erased/);
});
