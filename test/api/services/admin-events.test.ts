import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileOne } from '../../store/promises/fixtures.ts';
import { createManualClock } from '../../support/clock.ts';
import { fileScope } from '../../support/file-scope.ts';
import { startService } from '../../support/service.ts';
import { typedError } from '../../support/typed-clients.ts';

const startMs = Date.UTC(2026, 10, 21, 12);
const clock = createManualClock(startMs);
const service = await startService(fileScope, { clock, env: { ARTSEAL_TIME_ZONE: 'Asia/Shanghai' } });
const { admin } = await service.operator();
const [gallery, house] = [await service.platform(), await service.platform()];

/** The filing numbers of each caller, by event. */
const filed: { readonly platform: string; readonly filingNo: string; readonly at: string }[] = [];
// At noon 60 of the gallery and 50 of the house, then one of each an hour later.
for (const [{ caller }, count] of [
  [gallery, 60],
  [house, 50],
] as const)
  for (let filing = 0; filing < count; filing += 1) await file(caller, '2026-11-21T20:00:00+08:00');
for (const { caller } of [gallery, house]) await file(caller, '2026-11-21T21:00:00+08:00');

async function file(platform: string, at: string): Promise<void> {
  const by = await service.execute({ kind: 'FindCaller', name: platform });
  const filingNo = await fileOne(service.store, by, { atMs: Date.parse(at), timestamp: at });
  filed.push({ platform, filingNo, at });
}

const ofGallery = { platform: gallery.caller };

test('an operator lists the events of all callers, page by page', async () => {
  const first = await admin.listAllEvents({});
  assert.equal(first.entries.length, 100);
  const second = await admin.listAllEvents({ after: first.next });
  const entries = [...first.entries, ...second.entries];
  assert.deepEqual(
    entries.map(({ event, platform, position }) => [platform, event?.filingNo, event?.at, position]),
    filed.map(({ platform, filingNo, at }, index) => [platform, filingNo, at, BigInt(index + 1)]),
  );
  assert.deepEqual(await admin.listAllEvents({ after: second.next }), {
    ...{ $typeName: 'artseal.v1.ListAllEventsResponse', entries: [], next: 112n },
  });
});

test('the events are those of the feed of their caller', async () => {
  const { events } = await service.clients(ofGallery);
  const { entries, next } = await admin.listAllEvents(ofGallery);
  const feed = await events.listEvents({});
  assert.deepEqual([entries.map(({ event }) => event), next], [feed.events, feed.next]);
  assert.deepEqual(entries.at(-1)?.position, 111n);
});

test('errors name the field that breaks a rule', async () => {
  for (const [request, message] of [
    [{ after: 113n }, /^after must not be above 112/],
    [{ ...ofGallery, after: 62n }, /^after must not be above 61/],
    [{ since: '2026-11-21T12:00:00Z', after: 0n }, /^since must be left out if after is given/],
  ] as const)
    assert.match((await typedError(admin.listAllEvents(request), 'VALIDATION_FAILED')).message, message);
  const { message } = await typedError(admin.listAllEvents({ platform: 'nobody' }), 'NOT_FOUND');
  assert.match(message, /^platform names no platform/);
});
