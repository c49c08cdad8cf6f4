import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Escrow_State, EscrowService } from '../../../gen/artseal/v1/escrow_pb.ts';
import { FilingService } from '../../../gen/artseal/v1/filing_pb.ts';
import type { ServiceDependencies } from '../../../src/api/services/dependencies.ts';
import { createEscrowService } from '../../../src/api/services/escrow-service.ts';
import { createFilingService } from '../../../src/api/services/filing-service.ts';
import { createPaging } from '../../../src/api/services/paging.ts';
import type { ApiCredentials } from '../../../src/client/sign.ts';
import { fileArtwork, openEscrow, releaseEscrow } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { fileScope } from '../../support/file-scope.ts';
import { apiError, assertRejected } from '../../support/rejected.ts';
import { requestReader } from '../../support/request-reader.ts';
import { startService } from '../../support/service.ts';
import { type RestAnswer, send } from '../../support/signed-request.ts';
import { typedError } from '../../support/typed-clients.ts';

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
const filingList = requestReader(FilingService, createFilingService(dependencies as ServiceDependencies));
const escrowList = requestReader(EscrowService, createEscrowService(dependencies as ServiceDependencies));

/** Invalid values; routes.test.ts has how a number is read, paging.test.ts pages and their tokens. */
const invalid = {
  year: ['-1', '10000', '1.5', 'x', '', '2026-01'],
  state: ['frozen', 'STATE_UNSPECIFIED', '', '2', 'PAID', 'FROZEN,CLOSED', '%20FROZEN'],
  filingNo: [
    ...['', '%20', 'x', '%E7%9F%B3', 'as-2026-000001', 'AS-2026-00001', 'AS-2026-0000001', 'AS-26-000001'],
    ...['%20AS-2026-000001', 'AS-2026-000001%0A', 'ES-2026-000001', 'AS-2026-00000a'],
    'AS-2026-000001&filingNo=AS-2026-000001',
  ],
};

for (const [target, read, fields] of [
  ['/api/v1/filing', filingList, ['year']],
  ['/api/v1/escrow', escrowList, ['state', 'filingNo']],
] as const) {
  test(`GET ${target} rejects an invalid query by the name of its field`, () => {
    for (const field of fields) {
      const error = apiError('VALIDATION_FAILED', new RegExp(`^${field} `));
      for (const value of invalid[field])
        assert.throws(() => read('GET', `${target}?${field}=${value}`), error, value);
    }
    const both = apiError('VALIDATION_FAILED', /pageSize must.*pageToken must/);
    assert.throws(() => read('GET', `${target}?pageSize=101&pageToken=x`), both);
  });
}

test('an invalid query gets 400, over REST and from the internal API', async () => {
  const gallery = await service.platform();
  assertRejected(await get(gallery, '/api/v1/filing?year=10000'), 400, 'VALIDATION_FAILED', /^year must be/);
  const { filings, escrows } = await service.clients();
  for (const [list, message] of [
    [filings.listFilings({ year: -1 }), /^year must be an integer from 1 to 9999/],
    [escrows.listEscrows({ state: 99 as Escrow_State }), /^state must be/],
    [escrows.listEscrows({ filingNo: 'AS-2026-1' }), /^filingNo must be AS-/],
  ] as const) {
    assert.match((await typedError(list, 'VALIDATION_FAILED')).message, message);
  }
});
