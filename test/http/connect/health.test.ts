import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type Client, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { Health, HealthCheckResponse_ServingStatus as Status } from '../../../gen/health/v1/health_pb.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { startService } from '../../support/service.ts';
import { serviceNames } from '../../support/services.ts';
import { typedError } from '../../support/typed-clients.ts';
import { openWithoutOperations } from './bare-listener.ts';
import { closesByItself } from './closing-support.ts';
import { transports } from './transports.ts';

const shared = await startService(fileScope);

/** A Watch stream whose messages are read one by one. */
function watching(health: Client<typeof Health>, service: string) {
  const broken = new AbortController();
  const messages = health.watch({ service }, { signal: broken.signal })[Symbol.asyncIterator]();
  return {
    /** The next status; `over` at the end of the stream. */
    next: async () => {
      const { done, value } = await messages.next();
      return done ? 'over' : (value as { status: Status }).status;
    },
    break: () => broken.abort(),
  };
}

for (const [name, transport] of Object.entries(transports)) {
  test(`health of the process and of each service needs no token: ${name}`, async () => {
    const health = createClient(Health, transport(shared.internalUrl, 'it_unknown'));
    for (const service of ['', ...serviceNames]) {
      assert.equal((await health.check({ service })).status, Status.SERVING);
    }
    await typedError(health.check({ service: 'artseal.v1.NoSuchService' }), 'NOT_FOUND');
    const { statuses } = await health.list({});
    const listed = Object.entries(statuses).map(([service, { status }]) => [service, status]);
    assert.deepEqual(
      listed.toSorted(),
      ['', ...serviceNames].map((service) => [service, Status.SERVING]).toSorted(),
    );
  });
}

for (const name of ['Connect over HTTP/1.1', 'gRPC over HTTP/2']) {
  const transport = transports[name] ?? assert.fail(name);

  test(`closing ends a Watch with NOT_SERVING, and does not wait for its client: ${name}`, async (t) => {
    const service = await startService(t);
    const health = createClient(Health, transport(service.internalUrl, 'it_unknown'));
    const known = ['', 'artseal.v1.EscrowService'].map((watched) => watching(health, watched));
    const unknown = watching(health, 'artseal.v1.NoSuchService');
    for (const watch of known) assert.equal(await watch.next(), Status.SERVING);
    assert.equal(await unknown.next(), Status.SERVICE_UNKNOWN);
    const closed = closesByItself(t, service);
    for (const watch of known) {
      assert.equal(await watch.next(), Status.NOT_SERVING);
      assert.equal(await watch.next(), 'over');
    }
    assert.equal(await unknown.next(), 'over');
    assert.ok(await closed);
  });

  test(`Check, List and Watch show faults while they last: ${name}`, async (t) => {
    const { readiness, baseUrl } = await openListener(t);
    const health = createClient(Health, transport(baseUrl, 'it_unknown'));
    const watch = watching(health, '');
    assert.equal(await watch.next(), Status.SERVING);
    for (const [fault, expected] of [
      ['the disk is full', Status.NOT_SERVING],
      [undefined, Status.SERVING],
      ['the disk is full again', Status.NOT_SERVING],
    ] as const) {
      readiness.set(fault);
      assert.equal((await health.check({})).status, expected);
      assert.equal((await health.list({})).statuses['']?.status, expected);
      assert.equal(await watch.next(), expected);
    }
    watch.break();
  });
}

test('a connection has at most six Watch streams at a time', async () => {
  const onConnection = () => createClient(Health, createGrpcTransport({ baseUrl: shared.internalUrl }));
  const health = onConnection();
  const watches = Array.from({ length: 6 }, () => watching(health, ''));
  for (const watch of watches) assert.equal(await watch.next(), Status.SERVING);
  const { message, retryAfter } = await typedError(watching(health, '').next(), 'RATE_LIMITED');
  assert.match(message, /At most 6 Watch/);
  assert.equal(retryAfter, '1');
  const other = watching(onConnection(), '');
  assert.equal(await other.next(), Status.SERVING);
  watches.pop()?.break();
  const freed = await eventually('room for another Watch', 5_000, async () => {
    const another = watching(health, '');
    return (await another.next().catch(() => undefined)) === Status.SERVING && another;
  });
  for (const watch of [...watches, other, freed]) watch.break();
});

/** The listener alone; the test decides when it drains and what fails. */
const openListener = (t: TestContext) =>
  openWithoutOperations(t, { identify: () => assert.fail('Nobody is known here.') });

test('draining ends a Watch of a process that is not ready, without a second NOT_SERVING', async (t) => {
  const { draining, readiness, baseUrl } = await openListener(t);
  readiness.set('the disk is full');
  const watch = watching(createClient(Health, createGrpcTransport({ baseUrl })), '');
  assert.equal(await watch.next(), Status.NOT_SERVING);
  draining.abort();
  assert.equal(await watch.next(), 'over');
});

test('calls while the process drains get NOT_SERVING', async (t) => {
  const { draining, baseUrl } = await openListener(t);
  const health = createClient(Health, createGrpcTransport({ baseUrl }));
  assert.equal((await health.check({})).status, Status.SERVING);
  draining.abort();
  assert.equal((await health.check({})).status, Status.NOT_SERVING);
  assert.equal((await health.list({})).statuses['']?.status, Status.NOT_SERVING);
  const watch = watching(health, '');
  assert.equal(await watch.next(), Status.NOT_SERVING);
  assert.equal(await watch.next(), 'over');
});
