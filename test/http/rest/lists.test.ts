import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Escrow_State, EscrowService } from '../../../gen/artseal/v1/escrow_pb.ts';
import { FilingService } from '../../../gen/artseal/v1/filing_pb.ts';
import { createEscrowService, type EscrowDependencies } from '../../../src/api/services/escrow-service.ts';
import { createFilingService, type FilingDependencies } from '../../../src/api/services/filing-service.ts';
import { createPaging } from '../../../src/api/services/paging.ts';
import type { ApiCredentials } from '../../../src/client/sign.ts';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { fileArtwork, openEscrow, releaseEscrow } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { fileScope } from '../../support/file-scope.ts';
import { apiError, assertRejected } from '../../support/rejected.ts';
import { requestReader } from '../../support/request-reader.ts';
import { artwork, escrowTerms } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { type RestAnswer, send } from '../../support/signed-request.ts';
import { typedClients, typedError } from '../../support/typed-clients.ts';

/** test/store/promises has which filings and orders a filter selects, and in which order; paging.test.ts the tokens. */
const clock = createManualClock(Date.UTC(2026, 11, 31, 12));
const service = await startService(fileScope, { clock });
const now = () => ({ timestamp: String(Math.floor(clock.nowMs() / 1_000)) });
const get = (by: ApiCredentials, target: string, listener = service): Promise<RestAnswer> =>
  send(listener.publicUrl, by, { target, ...now() });
const file = async (by: ApiCredentials): Promise<string> =>
  (await fileArtwork(service, by, now())).json.filingNo;
const open = async (by: ApiCredentials, filingNo: string, terms: object = {}): Promise<string> =>
  (await openEscrow(service, by, filingNo, terms, now())).json.escrowId;
const typed = async (operator = false) =>
  typedClients(createTypedTransport(service.internalUrl, await service.token(operator)));

test('a filing is read and listed exactly as it was sent', async () => {
  const gallery = await service.platform();
  assert.deepEqual((await get(gallery, '/api/v1/filing')).json, { filings: [], nextPageToken: '' });
  const sent = { ...artwork, author: ' Käthe 石🖌', condition: 'x'.repeat(2_000), price: 0 };
  const { json: receipt } = await fileArtwork(service, gallery, { ...now(), body: JSON.stringify(sent) });
  const read = await get(gallery, `/api/v1/filing/${receipt.filingNo}`);
  assert.equal(read.status, 200, read.text);
  assert.deepEqual(read.json, { ...receipt, ...sent, currency: 'CNY', caller: gallery.caller });
  const receipts = ['filingNo', 'status', 'chain', 'hash', 'timestamp'];
  assert.deepEqual(Object.keys(read.json), [...receipts, ...Object.keys(artwork), 'currency', 'caller']);
  assert.deepEqual((await get(gallery, '/api/v1/filing')).json, { filings: [read.json], nextPageToken: '' });
});

test('an order is read and listed with its terms and its history', async () => {
  const gallery = await service.platform();
  assert.deepEqual((await get(gallery, '/api/v1/escrow')).json, { escrows: [], nextPageToken: '' });
  const filingNo = await file(gallery);
  const timestamp = (ms: number) => `${new Date(ms).toISOString().slice(0, 19)}+00:00`;
  const opened = timestamp(clock.nowMs());
  const escrowId = await open(gallery, filingNo, { amount: 7 });
  clock.advance(61_000);
  const released = await releaseEscrow(service, gallery, escrowId, now());
  const read = await get(gallery, `/api/v1/escrow/${escrowId}`);
  assert.deepEqual(read.json, {
    escrowId,
    state: 'RELEASED',
    clearing: 'LICENSED_PSP_NO_SECOND_CLEARING',
    ...escrowTerms(filingNo),
    amount: 7,
    currency: 'CNY',
    caller: gallery.caller,
    timestamp: opened,
    history: [
      { state: 'UNPAID', at: opened },
      { state: 'FROZEN', at: opened },
      { state: 'RELEASED', at: timestamp(clock.nowMs()) },
    ],
  });
  assert.deepEqual(released.json, read.json);
  assert.deepEqual((await get(gallery, '/api/v1/escrow')).json, { escrows: [read.json], nextPageToken: '' });
});

test('lists are newest first, page by page, and filtered as the query says', async () => {
  const gallery = await service.platform();
  const [first, second, third] = [await file(gallery), await file(gallery), await file(gallery)];
  const page = (await get(gallery, '/api/v1/filing?pageSize=2&year=2026')).json;
  const rest = `/api/v1/filing?pageSize=2&year=2026&pageToken=${page.nextPageToken}`;
  const { filings, nextPageToken } = (await get(gallery, rest)).json;
  assert.deepEqual(
    [...page.filings, ...filings].map(({ filingNo }) => filingNo),
    [third, second, first],
  );
  assert.equal(nextPageToken, '');
  assert.deepEqual((await get(gallery, '/api/v1/filing?year=2027')).json.filings, []);

  const frozen = await open(gallery, first);
  const released = await open(gallery, second);
  await releaseEscrow(service, gallery, released, now());
  const ids = async (query: string) =>
    (await get(gallery, `/api/v1/escrow${query}`)).json.escrows.map(
      ({ escrowId }: { escrowId: string }) => escrowId,
    );
  assert.deepEqual(await ids(''), [released, frozen]);
  assert.deepEqual(await ids('?state=FROZEN'), [frozen]);
  assert.deepEqual(await ids(`?filingNo=${second}&state=RELEASED`), [released]);
  assert.deepEqual(await ids(`?filingNo=${first}&state=RELEASED`), []);
});

const dependencies = { paging: createPaging(Buffer.alloc(32)) };
const filingList = requestReader(FilingService, createFilingService(dependencies as FilingDependencies));
const escrowList = requestReader(EscrowService, createEscrowService(dependencies as EscrowDependencies));

/** Invalid queries, by the field that the error names. */
const bothLists: Readonly<Record<string, readonly string[]>> = {
  pageSize: [
    ...['-1', '101', '2147483648', '1.5', 'x', '', '%2010', '0x10', '1_0'].map((size) => `pageSize=${size}`),
    'pageSize=1&pageSize=1',
  ],
  pageToken: ['x', 'YWZ0ZXI6', 'after:1', '%20', '%01', 'x'.repeat(1_000)].map(
    (token) => `pageToken=${token}`,
  ),
  page_size: ['page_size=1'],
  limit: ['limit=1'],
};
const years = ['-1', '10000', '2147483648', '1.5', 'x', '', '2026-01'];
const states = ['frozen', 'STATE_UNSPECIFIED', '', '2', 'PAID', 'FROZEN,CLOSED', '%20FROZEN'];
const numbers = [
  ...['', '%20', 'x', '%E7%9F%B3', 'as-2026-000001', 'AS-2026-00001', 'AS-2026-0000001', 'AS-26-000001'],
  ...['%20AS-2026-000001', 'AS-2026-000001%0A', 'ES-2026-000001', 'AS-2026-00000a'],
];

for (const [target, read, queries] of [
  [
    '/api/v1/filing',
    filingList,
    { ...bothLists, year: years.map((year) => `year=${year}`), state: ['state=FROZEN'] },
  ],
  [
    '/api/v1/escrow',
    escrowList,
    {
      ...bothLists,
      state: states.map((state) => `state=${state}`),
      filingNo: [
        ...numbers.map((number) => `filingNo=${number}`),
        ...['filingNo', 'filingNo=AS-2026-000001&filingNo=AS-2026-000001'],
      ],
      year: ['year=2026'],
      owner: ['owner=1'],
    },
  ],
] as const) {
  test(`GET ${target} rejects an invalid query by the name of its field`, () => {
    for (const [field, wrong] of Object.entries(queries)) {
      const error = apiError('VALIDATION_FAILED', new RegExp(`^${field} `));
      for (const query of wrong) assert.throws(() => read('GET', `${target}?${query}`), error, query);
    }
    const both = apiError('VALIDATION_FAILED', /pageSize must.*pageToken must/);
    assert.throws(() => read('GET', `${target}?pageSize=101&pageToken=x`), both);
  });
}

test('an invalid query gets 400, over REST and from the internal API', async () => {
  const gallery = await service.platform();
  assertRejected(await get(gallery, '/api/v1/filing?year=10000'), 400, 'VALIDATION_FAILED', /^year must be/);
  const { filings, escrows } = await typed();
  for (const [list, message] of [
    [filings.listFilings({ year: -1 }), /^year must be an integer from 1 to 9999/],
    [escrows.listEscrows({ state: 99 as Escrow_State }), /^state must be/],
    [escrows.listEscrows({ filingNo: 'AS-2026-1' }), /^filingNo must be AS-/],
  ] as const) {
    assert.match((await typedError(list, 'VALIDATION_FAILED')).message, message);
  }
});

test('a page token is valid for its list and its caller, at both APIs and after a restart', async (t) => {
  const first = await startService(t, { clock });
  const [one, other] = [await first.platform(), await first.platform()];
  const filed: string[] = [];
  for (let count = 0; count < 3; count += 1)
    filed.unshift((await fileArtwork(first, one, now())).json.filingNo);
  const { nextPageToken } = (await get(one, '/api/v1/filing?pageSize=1', first)).json;
  const query = `?pageToken=${nextPageToken}`;
  const invalid = /^pageToken must be a nextPageToken of the same list/;
  for (const [by, list] of [
    [other, 'filing'],
    [one, 'escrow'],
  ] as const) {
    assertRejected(await get(by, `/api/v1/${list}${query}`, first), 400, 'VALIDATION_FAILED', invalid);
  }
  assert.equal((await get(one, '/api/v1/filing?pageToken=', first)).json.filings.length, 3, 'the first page');
  const clientOf = async () =>
    typedClients(createTypedTransport(first.internalUrl, await first.token())).filings;
  const [own, foreign] = [await clientOf(), await clientOf()];
  await typedError(own.listFilings({ pageToken: nextPageToken }), 'VALIDATION_FAILED');
  const { nextPageToken: pageToken } = await own.listFilings({ pageSize: 1 });
  await typedError(foreign.listFilings({ pageToken }), 'VALIDATION_FAILED');
  assert.equal((await own.listFilings({ pageToken })).filings.length, 2);
  await first.close();
  const again = await startService(t, { clock, dataDir: first.dataDir });
  const next = await get(one, `/api/v1/filing${query}`, again);
  assert.deepEqual(
    next.json.filings.map(({ filingNo }: { filingNo: string }) => filingNo),
    filed.slice(1),
  );
});
