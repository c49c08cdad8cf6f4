import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Client, createClient, type Transport } from '@connectrpc/connect';
import { EventService, type WatchEventsResponse } from '../../../gen/artseal/v1/event_pb.ts';
import { fileArtwork, openEscrow, refundEscrow } from '../../support/calls.ts';
import { fileScope } from '../../support/file-scope.ts';
import { createRandom } from '../../support/random.ts';
import { startService } from '../../support/service.ts';
import { typedError } from '../../support/typed-clients.ts';
import { closesByItself } from './closing-support.ts';
import { type TransportMaker, transports } from './transports.ts';

const service = await startService(fileScope);
const token = await service.token();

const grpc: TransportMaker = transports['gRPC over HTTP/2'] ?? assert.fail();

/** A stream whose messages are read one by one. */
function watching(transport: Transport, request: { readonly platform?: string; readonly after?: bigint }) {
  const client: Client<typeof EventService> = createClient(EventService, transport);
  const broken = new AbortController();
  const messages = client.watchEvents(request, { signal: broken.signal })[Symbol.asyncIterator]();
  return {
    /** The next message. */
    next: async (): Promise<WatchEventsResponse> => {
      const { done, value } = await messages.next();
      assert.ok(!done, 'The stream is over.');
      return value;
    },
    break: () => broken.abort(),
  };
}

/** test/http/connect/streams.test.ts has every protocol. */
test('streams of one platform and of all get events as they happen', async () => {
  const gallery = await service.platform();
  const first = watching(grpc(service.internalUrl, token), {});
  const { next: newest } = await first.next();
  first.break();
  const one = watching(grpc(service.internalUrl, token), { platform: gallery.caller });
  assert.deepEqual((await one.next()).next, 0n);
  const all = watching(grpc(service.internalUrl, token), { after: newest });
  assert.deepEqual((await all.next()).next, newest);

  const { filingNo } = (await fileArtwork(service, gallery)).json;
  const { escrowId } = (await openEscrow(service, gallery, filingNo)).json;
  await refundEscrow(service, gallery, escrowId);
  for (const type of ['filing.created', 'escrow.frozen', 'escrow.refunded']) {
    const { event, platform, next } = await one.next();
    assert.deepEqual([event?.type, event?.filingNo, platform], [type, filingNo, gallery.caller]);
    assert.equal(next, event?.sequence);
  }
  for (;;) {
    const { event, platform } = await all.next();
    if (platform !== gallery.caller) continue;
    if (event?.type === 'escrow.refunded') break;
  }
  one.break();
  all.break();
});

test('closing ends a stream with UNAVAILABLE, and does not wait for its client', async (t) => {
  const closing = await startService(t);
  const stream = watching(grpc(closing.internalUrl, await closing.token()), {});
  await stream.next();
  const rejected = typedError(stream.next(), 'UNAVAILABLE');
  assert.ok(await closesByItself(t, closing));
  await rejected;
});

test('streams that resume from cursors miss no event and repeat none while filings are made', async (t) => {
  const random = createRandom();
  t.diagnostic(`seed ${random.seed}`);
  const gallery = await service.platform();
  const filings = 60;
  const filed: string[] = [];
  const filing = (async () => {
    for (let left = filings; left > 0; left -= 20) {
      const answers = await Promise.all(Array.from({ length: 20 }, () => fileArtwork(service, gallery)));
      filed.push(...answers.map(({ json }) => json.filingNo));
    }
  })();

  /** Reads all events of the platform from streams of `platform`, or of all, that break off at random. */
  async function takeAll(platform: string): Promise<string[]> {
    const taken: string[] = [];
    let after: bigint | undefined;
    while (taken.length < filings) {
      const [, transport] = random.pick(Object.entries(transports)) ?? assert.fail();
      const stream = watching(transport(service.internalUrl, token), {
        platform,
        ...(after === undefined ? {} : { after }),
      });
      for (let left = random.below(20); left >= 0 && taken.length < filings; left -= 1) {
        const message = await stream.next();
        after = message.next;
        if (message.platform === gallery.caller) taken.push(message.event?.filingNo ?? '');
      }
      stream.break();
    }
    return taken;
  }

  const [one, all] = await Promise.all([takeAll(gallery.caller), takeAll('')]);
  await filing;
  assert.equal(new Set(one).size, filings);
  assert.deepEqual(one, all);
  assert.deepEqual(one.toSorted(), filed.toSorted());
});
