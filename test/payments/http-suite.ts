import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import type { InstructionKind } from '../../src/domain/escrow.ts';
import type { PaymentOrder, PaymentProvider } from '../../src/payments/provider.ts';
import { eventually } from '../support/eventually.ts';
import type { RequestFault } from '../support/request-faults.ts';
import { abortFreeze, heldUp } from './held-requests.ts';
import { instruct, lookUp } from './provider-suite.ts';

const hourMs = 3_600_000;
const timeoutMs = 60_000;

/** A provider that is called over HTTP, at its stand-in. */
export interface HttpProvider {
  readonly standIn: {
    readonly requests: readonly unknown[];
    failNext(pattern: RegExp, fault: RequestFault): void;
    forgetKeys(): void;
  };
  readonly provider: PaymentProvider;
  order(more?: Partial<PaymentOrder>): PaymentOrder;
  /** Returns how many holds were made for an order. */
  holds(order: PaymentOrder): number;
  /** Opens the same provider with another URL. */
  openAt(url: string): PaymentProvider;
}

/** Providers of one kind, and their requests. */
export interface HttpEngine {
  open(t: TestContext, now?: () => number): Promise<HttpProvider>;
  /** The writing requests of a FREEZE, the hold last. */
  readonly freeze: readonly [...RegExp[], RegExp];
  readonly release: RegExp;
  /** The request that returns a hold, for REFUND and CANCEL. */
  readonly giveBack: RegExp;
}

async function listen(t: TestContext, listener?: RequestListener) {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => new Promise((resolve) => server.close(resolve));
  t.after(close);
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

/** Tests what every provider that is called over HTTP guarantees. */
export function httpSuite(name: string, engine: HttpEngine): void {
  describe(`provider ${name} over HTTP`, () => {
    describe('a call without a response', () => responsePromises(engine));
    describe('CANCEL and FREEZE at the same time', () => crossingPromises(engine));
    describe('idempotency keys that expired', () => keyPromises(engine));
  });
}

function responsePromises(engine: HttpEngine): void {
  const hold = engine.freeze.at(-1) ?? assert.fail();

  for (const [fault, done] of [
    ['lose-request', false],
    ['lose-answer', true],
    ['fail-and-save', false],
    ['do-and-fail', true],
  ] as const) {
    for (const [kind, pattern, status] of [
      ['RELEASE', engine.release, 'PAID_OUT'],
      ['REFUND', engine.giveBack, 'RETURNED'],
      ['CANCEL', engine.giveBack, 'RETURNED'],
    ] as const) {
      test(`${kind}, ${fault}: a look-up finds what was done, and a repetition ends it`, async (t) => {
        const { standIn, provider, order } = await engine.open(t);
        const held = order();
        const { reference } = await instruct(provider, held, 'FREEZE');
        const asked = { ...held, reference };
        standIn.failNext(pattern, fault);
        await assert.rejects(instruct(provider, asked, kind));
        assert.equal((await lookUp(provider, asked)).status, done ? status : 'HELD');
        assert.equal((await instruct(provider, asked, kind)).status, status);
        assert.equal((await lookUp(provider, asked)).status, status);
      });
    }
  }

  test('a refused connection is UNREACHABLE', async (t) => {
    const { openAt, order } = await engine.open(t);
    const { url, close } = await listen(t);
    await close();
    const unreachable = { name: 'ProviderFailure', kind: 'UNREACHABLE', message: /, cause ECONNREFUSED$/ };
    await assert.rejects(instruct(openAt(url), order(), 'FREEZE'), unreachable);
  });

  test('a redirect is not followed', async (t) => {
    const { openAt, order } = await engine.open(t);
    let requests = 0;
    const elsewhere = await listen(t, (_, response) => {
      requests += 1;
      response.end('{}');
    });
    const { url } = await listen(t, (_, response) => {
      response.writeHead(307, { location: elsewhere.url }).end();
    });
    await assert.rejects(instruct(openAt(url), order(), 'FREEZE'), { kind: 'UNREACHABLE' });
    assert.equal(requests, 0);
  });

  test('close ends the calls in flight', async (t) => {
    const { standIn, provider, order } = await engine.open(t);
    const { wait, there } = heldUp(t);
    standIn.failNext(hold, { until: wait });
    const rejected = assert.rejects(instruct(provider, order(), 'FREEZE'), /closed/);
    await there;
    await provider.close();
    await rejected;
  });
}

function crossingPromises(engine: HttpEngine): void {
  const hold = engine.freeze.at(-1) ?? assert.fail();

  for (const request of engine.freeze) {
    test(`a CANCEL that overtakes ${request.source} is VOID, and the FREEZE makes no hold`, async (t) => {
      const { standIn, provider, order, holds } = await engine.open(t);
      const asked = order();
      const { wait, there, letThrough } = heldUp(t);
      standIn.failNext(request, { onTheWay: wait });
      await abortFreeze(provider, asked, there);
      const cancelled = await instruct(provider, asked, 'CANCEL');
      assert.equal(cancelled.status, 'VOID');
      const before = standIn.requests.length;
      letThrough();
      await eventually('the FREEZE', timeoutMs, () => standIn.requests.length > before);
      assert.deepEqual(await lookUp(provider, asked), cancelled);
      assert.equal((await instruct(provider, asked, 'FREEZE')).status, 'VOID');
      assert.equal(holds(asked), 0);
    });
  }

  test('a CANCEL during a FREEZE rejects, and returns the hold when it is repeated', async (t) => {
    const { standIn, provider, order, holds } = await engine.open(t);
    const asked = order();
    const { wait, there, letThrough } = heldUp(t);
    standIn.failNext(hold, { until: wait });
    await abortFreeze(provider, asked, there);
    await assert.rejects(instruct(provider, asked, 'CANCEL'), { name: 'ProviderFailure', kind: 'FAILED' });
    letThrough();
    await eventually('the hold', timeoutMs, () => holds(asked) === 1);
    assert.equal((await instruct(provider, asked, 'CANCEL')).status, 'RETURNED');
  });

  test('a CANCEL returns the hold of a FREEZE that arrives after its look-up', async (t) => {
    const { standIn, provider, order } = await engine.open(t);
    const asked = order();
    const { wait, there, letThrough } = heldUp(t);
    standIn.failNext(hold, { onTheWay: wait });
    const cancelled = instruct(provider, asked, 'CANCEL');
    await there;
    assert.equal((await instruct(provider, asked, 'FREEZE')).status, 'HELD');
    letThrough();
    assert.equal((await cancelled).status, 'RETURNED');
  });
}

function keyPromises(engine: HttpEngine): void {
  for (const [course, status, holds] of [
    ['FREEZE', 'HELD', 1],
    ['FREEZE RELEASE', 'PAID_OUT', 1],
    ['FREEZE REFUND', 'RETURNED', 1],
    ['CANCEL', 'VOID', 0],
  ] as const) {
    test(`a FREEZE a day after ${course} makes no second hold: ${status}`, async (t) => {
      let nowMs = Date.now();
      const { standIn, provider, order, holds: holdsOf } = await engine.open(t, () => nowMs);
      const asked = order();
      for (const kind of course.split(' ')) await instruct(provider, asked, kind as InstructionKind);
      nowMs += 25 * hourMs;
      standIn.forgetKeys();
      assert.equal((await instruct(provider, asked, 'FREEZE')).status, status);
      assert.equal(holdsOf(asked), holds);
    });
  }

  for (const [kind, status] of [
    ['FREEZE', 'HELD'],
    ['CANCEL', 'VOID'],
  ] as const) {
    test(`a ${kind} of an order that was opened a day before: ${status}`, async (t) => {
      const { provider, order } = await engine.open(t);
      const asked = order({ openedAtMs: Date.now() - 25 * hourMs });
      assert.equal((await instruct(provider, asked, kind)).status, status);
    });
  }
}
