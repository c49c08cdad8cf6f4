import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiCredentials } from '../../../src/client/sign.ts';
import { fileArtwork, openEscrow, releaseEscrow } from '../../support/calls.ts';
import { fileScope } from '../../support/file-scope.ts';
import { openLedger } from '../../support/ledger.ts';
import { assertRejected } from '../../support/rejected.ts';
import { startService } from '../../support/service.ts';
import { send } from '../../support/signed-request.ts';
import { closesByItself } from '../connect/closing-support.ts';

const service = await startService(fileScope);
const ledger = openLedger(fileScope, service);

const list = (by: ApiCredentials, query = '', listener: { readonly publicUrl: string } = service) =>
  send(listener.publicUrl, by, { target: `/api/v1/events${query}` });

test('a platform lists the events of its filing and of the sale, in order, and none of others', async () => {
  const gallery = await service.platform();
  const { filingNo, timestamp } = (await fileArtwork(service, gallery)).json;
  const { escrowId } = (await openEscrow(service, gallery, filingNo)).json;
  await releaseEscrow(service, gallery, escrowId);
  await fileArtwork(service, await service.platform());

  const { status, json } = await list(gallery);
  assert.equal(status, 200);
  const [filed] = json.events;
  assert.match(filed.id, /^evt_[0-9a-f]{32}$/);
  assert.deepEqual(filed, { id: filed.id, sequence: 1, type: 'filing.created', at: timestamp, filingNo });
  const events = json.events.map(({ id: _, at: _1, ...event }: { id: string; at: string }) => event);
  assert.deepEqual(events, [
    { sequence: 1, type: 'filing.created', filingNo },
    { sequence: 2, type: 'escrow.frozen', filingNo, escrowId, state: 'FROZEN' },
    { sequence: 3, type: 'escrow.released', filingNo, escrowId, state: 'RELEASED' },
    { sequence: 4, type: 'provenance.transferred', filingNo },
  ]);
  assert.equal(json.next, 4);
  assert.deepEqual((await list(gallery, '?after=2')).json, { events: json.events.slice(2), next: 4 });
  assert.deepEqual((await list(gallery, '?after=4')).json, { events: [], next: 4 });
  assert.deepEqual((await list(gallery, '?after=0')).json, json);
});

test('closing the service makes waiting calls return at once, with the events that there are', async (t) => {
  const closing = await startService(t);
  const gallery = await closing.platform();
  const waiting = [1, 2, 3].map(() => list(gallery, '?waitSeconds=30', closing));
  // When this later call returns, the server has accepted the earlier ones.
  await list(gallery, '', closing);
  assert.ok(await closesByItself(t, closing));
  for (const { status, json } of await Promise.all(waiting)) {
    assert.deepEqual([status, json], [200, { events: [], next: 0 }]);
  }
});

test('listing uses no quota, even if it fails, and reports how much is left', async () => {
  const gallery = await service.platform('ENTERPRISE', 2);
  const left = async (query: string) => {
    const { status, headers } = await list(gallery, query);
    return [status, /"monthly";r=(\d+)/.exec(String(headers.ratelimit))?.[1]];
  };
  assert.deepEqual(await left(''), [200, '2']);
  assert.deepEqual(await left('?after=7'), [400, '2']);
  assert.deepEqual(await left('?nonsense=1'), [400, '2']);
  assert.equal(ledger.calls(gallery.caller), 0);

  await fileArtwork(service, gallery);
  await fileArtwork(service, gallery);
  assertRejected(await fileArtwork(service, gallery), 429, 'QUOTA_EXCEEDED');
  assert.deepEqual(await left(''), [200, '0']);
  assert.deepEqual(await left('?after=-1'), [400, '0']);
  assert.equal(ledger.calls(gallery.caller), 2);
});

test('a wrong parameter is named', async () => {
  const gallery = await service.platform();
  for (const [query, message] of [
    ['?after=-1', /^after must be an integer from 0 to 9007199254740991$/],
    ['?after=1', /^after must not be above 0, the cursor of the newest event$/],
    ['?after=1&waitSeconds=30', /^after must not be above 0/],
    ['?waitSeconds=-1', /^waitSeconds must be an integer from 0 to 30$/],
    ['?after=-1&waitSeconds=31', /^after must be .*; waitSeconds must be /],
  ] as const)
    assertRejected(await list(gallery, query), 400, 'VALIDATION_FAILED', message);
});
