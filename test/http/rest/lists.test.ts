import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Escrow_State, Escrow_Type } from '../../../gen/artseal/v1/escrow_pb.ts';
import type { ApiCredentials } from '../../../src/client/sign.ts';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { fileArtwork, openEscrow, refundEscrow, releaseEscrow } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { assertRefused } from '../../support/rejected.ts';
import { artwork, escrowTerms } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { type RestAnswer, send } from '../../support/signed-request.ts';
import { typedClients, typedRefusal } from '../../support/typed-clients.ts';

/** A service whose time stands still, two platforms, an internal system, and the calls of all. */
async function startListing(t: TestContext) {
  const clock = createManualClock(Date.UTC(2026, 11, 31, 12));
  const service = await startService(t, { clock });
  const [one, other] = [await service.platform(), await service.platform()];
  const internal = typedClients(createTypedTransport(service.internalUrl, await service.token()));
  const now = () => ({ timestamp: String(Math.floor(clock.nowMs() / 1_000)) });
  const get = (by: ApiCredentials, target: string): Promise<RestAnswer> =>
    send(service.publicUrl, by, { target, ...now() });
  const file = async (by: ApiCredentials): Promise<string> =>
    (await fileArtwork(service, by, now())).json.filingNo;
  const open = async (by: ApiCredentials, filingNo: string, terms: object = {}) => {
    const { json } = await openEscrow(service, by, filingNo, terms, now());
    return json.escrowId as string;
  };
  return { clock, service, one, other, internal, now, get, file, open };
}

/** All pages of a list, each asked for with the token of the one before. */
async function pagesOf(get: (target: string) => Promise<RestAnswer>, target: string) {
  // biome-ignore lint/suspicious/noExplicitAny: pages of different lists.
  const pages: any[] = [];
  let token = '';
  do {
    const { status, json, text } = await get(token === '' ? target : `${target}&pageToken=${token}`);
    assert.equal(status, 200, text);
    pages.push(json);
    token = json.nextPageToken;
  } while (token !== '' && pages.length < 100);
  return pages;
}

const numbersIn = (page: { filings: { filingNo: string }[] }) => page.filings.map(({ filingNo }) => filingNo);
const idsIn = (page: { escrows: { escrowId: string }[] }) => page.escrows.map(({ escrowId }) => escrowId);

test('a filing is read and listed exactly as it was sent and answered', async (t) => {
  const { one, now, get, service } = await startListing(t);
  const sent = { ...artwork, author: ' Käthe 石🖌', condition: 'x'.repeat(2_000), price: 0 };
  const { json: receipt } = await fileArtwork(service, one, { ...now(), body: JSON.stringify(sent) });
  const read = await get(one, `/api/v1/filing/${receipt.filingNo}`);
  assert.equal(read.status, 200, read.text);
  assert.deepEqual(read.json, { ...receipt, ...sent, currency: 'CNY', caller: one.caller });
  const receipts = ['filingNo', 'status', 'chain', 'hash', 'timestamp'];
  const keys = [...receipts, ...Object.keys(artwork), 'currency', 'caller'];
  assert.deepEqual(Object.keys(read.json), keys);
  const list = await get(one, '/api/v1/filing');
  assert.deepEqual(list.json, { filings: [read.json], nextPageToken: '' });
});

test('an order is read and listed with its terms and its history', async (t) => {
  const { clock, one, now, get, service, file, open } = await startListing(t);
  const filingNo = await file(one);
  const escrowId = await open(one, filingNo, { amount: 7 });
  clock.advance(61_000);
  const released = await releaseEscrow(service, one, escrowId, now());
  const read = await get(one, `/api/v1/escrow/${escrowId}`);
  const opened = '2026-12-31T12:00:00+00:00';
  assert.deepEqual(read.json, {
    escrowId,
    state: 'RELEASED',
    clearing: 'LICENSED_PSP_NO_SECOND_CLEARING',
    ...escrowTerms(filingNo),
    amount: 7,
    currency: 'CNY',
    caller: one.caller,
    timestamp: opened,
    history: [
      { state: 'UNPAID', at: opened },
      { state: 'FROZEN', at: opened },
      { state: 'RELEASED', at: '2026-12-31T12:01:01+00:00' },
    ],
  });
  assert.deepEqual(released.json, read.json);
  assert.deepEqual((await get(one, '/api/v1/escrow')).json, { escrows: [read.json], nextPageToken: '' });
});

test('an empty list is empty, and has no next page', async (t) => {
  const { one, get } = await startListing(t);
  assert.deepEqual((await get(one, '/api/v1/filing')).json, { filings: [], nextPageToken: '' });
  assert.deepEqual((await get(one, '/api/v1/escrow')).json, { escrows: [], nextPageToken: '' });
});

test('filings are listed newest first, page by page, whatever is filed meanwhile', async (t) => {
  const { one, get, file } = await startListing(t);
  const numbers: string[] = [];
  for (let count = 0; count < 7; count += 1) numbers.unshift(await file(one));
  const pages = await pagesOf(async (target) => {
    const answer = await get(one, target);
    await file(one);
    return answer;
  }, '/api/v1/filing?pageSize=3');
  assert.deepEqual(pages.map(numbersIn), [numbers.slice(0, 3), numbers.slice(3, 6), numbers.slice(6)]);
  const all = await get(one, '/api/v1/filing?pageSize=100');
  assert.equal(all.json.filings.length, 10);
  const some = await get(one, '/api/v1/filing?pageSize=0');
  assert.deepEqual(some.json, all.json, '0 stands for fifty');
});

test('a list of exactly one page has no next one; fifty are a page unless asked otherwise', async (t) => {
  const { one, get, file } = await startListing(t);
  for (let count = 0; count < 51; count += 1) await file(one);
  const first = (await get(one, '/api/v1/filing')).json;
  assert.equal(first.filings.length, 50);
  const last = (await get(one, `/api/v1/filing?pageToken=${first.nextPageToken}`)).json;
  assert.deepEqual([last.filings.length, last.nextPageToken], [1, '']);
  const exact = (await get(one, '/api/v1/filing?pageSize=51')).json;
  assert.deepEqual([exact.filings.length, exact.nextPageToken], [51, '']);
});

test('the year of a filing is that of its number', async (t) => {
  const { clock, one, internal, get, file } = await startListing(t);
  const old = await file(one);
  clock.leap(86_400_000);
  const fresh = await file(one);
  for (const [year, expected] of [
    [2026, [old]],
    [2027, [fresh]],
    [0, [fresh, old]],
    [2025, []],
    [9999, []],
    [1, []],
  ] as const) {
    assert.deepEqual(numbersIn((await get(one, `/api/v1/filing?year=${year}`)).json), expected, String(year));
    assert.deepEqual(numbersIn(await internal.filings.listFilings({ year })), expected, String(year));
  }
});

test('filters of orders can be combined, and hold on every page', async (t) => {
  const { service, one, internal, now, get, file, open } = await startListing(t);
  const [first, second] = [await file(one), await file(one)];
  const byState: Record<string, string[]> = {
    RELEASED: [],
    REFUNDED: [],
    FROZEN: [],
    CLOSED: [],
    UNPAID: [],
  };
  const ids: string[] = [];
  for (const filingNo of [first, first, second]) {
    const released = await open(one, filingNo);
    await releaseEscrow(service, one, released, now());
    byState.RELEASED?.unshift(released);
    ids.unshift(released);
  }
  const refunded = await open(one, first);
  await refundEscrow(service, one, refunded, now());
  const frozen = await open(one, second);
  byState.REFUNDED?.push(refunded);
  byState.FROZEN?.push(frozen);
  ids.unshift(frozen, refunded);

  assert.deepEqual(idsIn((await get(one, '/api/v1/escrow')).json), ids);
  for (const [state, expected] of Object.entries(byState)) {
    const pages = await pagesOf((target) => get(one, target), `/api/v1/escrow?state=${state}&pageSize=1`);
    assert.deepEqual(pages.flatMap(idsIn), expected, state);
    const typed = await internal.escrows.listEscrows({
      state: Escrow_State[state as keyof typeof Escrow_State],
    });
    assert.deepEqual(idsIn(typed), expected, state);
  }
  const ofFirst = idsIn((await get(one, `/api/v1/escrow?filingNo=${first}`)).json);
  assert.deepEqual(ofFirst, [refunded, ...(byState.RELEASED ?? []).slice(1)]);
  assert.deepEqual(idsIn(await internal.escrows.listEscrows({ filingNo: first })), ofFirst);
  const both = `/api/v1/escrow?filingNo=${second}&state=RELEASED`;
  assert.deepEqual(idsIn((await get(one, both)).json), byState.RELEASED?.slice(0, 1));
  const none = await get(one, '/api/v1/escrow?filingNo=AS-2026-999999');
  assert.deepEqual(none.json, { escrows: [], nextPageToken: '' });
});

const badQueries: readonly (readonly [query: string, field: string])[] = [
  ...['-1', '101', '2147483648', '1.5', 'x', '', '%2010', '0x10', '1_0'].map(
    (size) => [`pageSize=${size}`, 'pageSize'] as const,
  ),
  ...['x', 'YWZ0ZXI6', 'after:1', '%20', '%01', 'YWZ0ZXI6MQ%3D%3D', 'x'.repeat(1_000)].map(
    (token) => [`pageToken=${token}`, 'pageToken'] as const,
  ),
  ['pageSize=1&pageSize=1', 'pageSize'],
  ['page_size=1', 'page_size'],
  ['limit=1', 'limit'],
];
const badYears = ['-1', '10000', '2147483648', '1.5', 'x', '', '2026-01'];
const badNumbers = [
  ...['', '%20', 'x', '%E7%9F%B3', 'as-2026-000001', 'AS-2026-00001', 'AS-2026-0000001', 'AS-26-000001'],
  ...['%20AS-2026-000001', 'AS-2026-000001%0A', 'ES-2026-000001', 'AS-2026-00000a'],
];
const badStates = ['frozen', 'STATE_UNSPECIFIED', '', '2', 'PAID', 'FROZEN,CLOSED', '%20FROZEN'];

for (const [target, queries] of Object.entries({
  '/api/v1/filing': [
    ...badQueries,
    ...badYears.map((year) => [`year=${year}`, 'year'] as const),
    ['state=FROZEN', 'state'] as const,
  ],
  '/api/v1/escrow': [
    ...badQueries,
    ...badStates.map((state) => [`state=${state}`, 'state'] as const),
    ['year=2026', 'year'] as const,
    ...badNumbers.map((number) => [`filingNo=${number}`, 'filingNo'] as const),
    ['filingNo', 'filingNo'] as const,
    ['filingNo=AS-2026-000001&filingNo=AS-2026-000001', 'filingNo'] as const,
    ['owner=1', 'owner'] as const,
  ],
})) {
  test(`GET ${target} refuses a bad filter, naming it`, async (t) => {
    const { one, get } = await startListing(t);
    for (const [query, field] of queries) {
      const answer = await get(one, `${target}?${query}`);
      assertRefused(answer, 400, 'VALIDATION_FAILED', new RegExp(`^${field} `));
    }
    const both = await get(one, `${target}?pageSize=101&pageToken=x`);
    assertRefused(both, 400, 'VALIDATION_FAILED', /pageSize must/, /pageToken must/);
  });
}

test('the internal API refuses a bad filter, naming it', async (t) => {
  const { internal } = await startListing(t);
  for (const year of [-1, 10_000, 2 ** 31 - 1]) {
    const { message } = await typedRefusal(internal.filings.listFilings({ year }), 'VALIDATION_FAILED');
    assert.match(message, /^year must be an integer from 1 to 9999/);
  }
  for (const state of [6, 99, -1] as Escrow_State[]) {
    const { message } = await typedRefusal(internal.escrows.listEscrows({ state }), 'VALIDATION_FAILED');
    assert.match(message, /^state must be/);
  }
  for (const filingNo of ['x', ' ', 'AS-2026-1', 'AS-2026-000001\n']) {
    const { message } = await typedRefusal(internal.escrows.listEscrows({ filingNo }), 'VALIDATION_FAILED');
    assert.match(message, /^filingNo must be AS-/);
  }
});

test('a platform sees its own and nothing else; an internal system sees all', async (t) => {
  const { one, other, internal, get, file, open } = await startListing(t);
  const [mine, theirs] = [await file(one), await file(other)];
  const [myOrder, theirOrder] = [await open(one, mine), await open(other, theirs)];
  // An order that an internal system opens for what a platform filed is its own, not the platform's.
  const third = await file(one);
  const terms = { ...escrowTerms(third), type: Escrow_Type.GUARANTEE, amount: 1n };
  const { escrowId: internalOrder } = await internal.escrows.createEscrow(terms);

  assert.deepEqual(numbersIn((await get(one, '/api/v1/filing')).json), [third, mine]);
  assert.deepEqual(numbersIn((await get(other, '/api/v1/filing')).json), [theirs]);
  assert.deepEqual(idsIn((await get(one, '/api/v1/escrow')).json), [myOrder]);
  assert.deepEqual(idsIn((await get(other, '/api/v1/escrow')).json), [theirOrder]);
  assert.deepEqual(idsIn((await get(other, `/api/v1/escrow?filingNo=${mine}`)).json), []);
  assert.deepEqual(idsIn((await get(other, '/api/v1/escrow?state=FROZEN')).json), [theirOrder]);
  assert.deepEqual(numbersIn(await internal.filings.listFilings({})), [third, theirs, mine]);
  const all = await internal.escrows.listEscrows({});
  assert.deepEqual(idsIn(all), [internalOrder, theirOrder, myOrder]);
  assert.equal((await internal.filings.getFiling({ filingNo: theirs })).filing?.caller, other.caller);
  assert.equal((await internal.escrows.getEscrow({ escrowId: theirOrder })).escrow?.caller, other.caller);

  const unknown = await get(one, '/api/v1/filing/AS-2026-999999');
  assertRefused(unknown, 404, 'FILING_NOT_FOUND', /filingNo/);
  const foreign = await get(one, `/api/v1/filing/${theirs}`);
  assertRefused(foreign, 404, 'FILING_NOT_FOUND');
  assert.equal(foreign.json.message, unknown.json.message, 'nothing tells that it is there');
  assertRefused(await get(one, `/api/v1/escrow/${theirOrder}`), 404, 'ESCROW_NOT_FOUND', /escrowId/);
  assertRefused(await get(one, `/api/v1/escrow/${internalOrder}`), 404, 'ESCROW_NOT_FOUND');
});

test('a page token shows nothing, and is good for its list and its caller alone, at both APIs', async (t) => {
  const { service, one, other, internal, get, file, open } = await startListing(t);
  for (const filingNo of [await file(other), await file(one), await file(one)]) {
    await open(filingNo === 'AS-2026-000001' ? other : one, filingNo);
  }
  const tokens: string[] = [];
  for (const list of ['/api/v1/filing', '/api/v1/escrow']) {
    const { nextPageToken } = (await get(one, `${list}?pageSize=1`)).json;
    tokens.push(nextPageToken);
    const foreign = await get(other, `${list}?pageToken=${nextPageToken}`);
    assertRefused(foreign, 400, 'VALIDATION_FAILED', /^pageToken must be a nextPageToken of the same list/);
    assert.equal((await get(one, `${list}?pageToken=${nextPageToken}`)).status, 200);
    assert.equal((await get(one, `${list}?pageToken=`)).status, 200, 'the first page');
  }
  const [ofFilings = '', ofEscrows = ''] = tokens;
  assertRefused(
    await get(one, `/api/v1/escrow?pageToken=${ofFilings}`),
    400,
    'VALIDATION_FAILED',
    /^pageToken/,
  );
  await typedRefusal(internal.filings.listFilings({ pageToken: ofFilings }), 'VALIDATION_FAILED');

  const operator = async () => {
    const transport = createTypedTransport(service.internalUrl, await service.token(true));
    return typedClients(transport);
  };
  const [first, second] = [await operator(), await operator()];
  const filings = (await first.filings.listFilings({ pageSize: 1 })).nextPageToken;
  const escrows = (await first.escrows.listEscrows({ pageSize: 1 })).nextPageToken;
  const keys = (await first.admin.listKeys({ pageSize: 1 })).nextPageToken;
  tokens.push(filings, escrows, keys);
  await typedRefusal(second.filings.listFilings({ pageToken: filings }), 'VALIDATION_FAILED');
  await typedRefusal(second.escrows.listEscrows({ pageToken: escrows }), 'VALIDATION_FAILED');
  await typedRefusal(second.admin.listKeys({ pageToken: keys }), 'VALIDATION_FAILED');
  await typedRefusal(first.filings.listFilings({ pageToken: ofEscrows }), 'VALIDATION_FAILED');
  assert.equal((await first.filings.listFilings({ pageToken: filings })).filings.length, 2);
  assert.equal((await first.escrows.listEscrows({ pageToken: escrows })).escrows.length, 2);
  assert.equal((await first.admin.listKeys({ pageToken: keys })).keys.length, 1);

  const readable = tokens.filter((token) => Buffer.from(token, 'base64url').includes('after'));
  assert.deepEqual(readable, []);
  assert.equal(new Set(tokens.map(({ length }) => length)).size, 1);
});

test('a page token is good after a restart', async (t) => {
  const { service, one, get, file, clock } = await startListing(t);
  for (let count = 0; count < 3; count += 1) await file(one);
  const { nextPageToken } = (await get(one, '/api/v1/filing?pageSize=1')).json;
  await service.close();
  const again = await startService(t, { clock, dataDir: service.dataDir });
  const timestamp = String(Math.floor(clock.nowMs() / 1_000));
  const target = `/api/v1/filing?pageToken=${nextPageToken}`;
  const next = await send(again.publicUrl, one, { target, timestamp });
  assert.deepEqual(numbersIn(next.json), ['AS-2026-000002', 'AS-2026-000001']);
});
