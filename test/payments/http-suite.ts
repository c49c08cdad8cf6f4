import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import { inspect } from 'node:util';
import type { InstructionKind } from '../../src/domain/escrow.ts';
import type { FailureKind, PaymentOrder, PaymentProvider } from '../../src/payments/provider.ts';
import { eventually } from '../support/eventually.ts';
import { freeAddress } from '../support/free-address.ts';
import { listenLocally } from '../support/local-server.ts';
import type { RequestFault } from '../support/stand-in.ts';
import { instruct, lookUp } from './provider-suite.ts';

const hourMs = 3_600_000;
const timeoutMs = 60_000;

/** A provider that is called over HTTP, at its stand-in. */
export interface HttpProvider {
  readonly standIn: {
    readonly apiKey: string;
    readonly requests: readonly { readonly method: string; readonly path: string }[];
    /** What goes wrong with the next request that matches. One that fails with a status leaves nothing. */
    failNext(pattern: RegExp, fault: RequestFault | { readonly status: number }): void;
    forgetKeys(): void;
    /** Rejects the key from now on, or accepts it again. */
    revokeKey(isRevoked: boolean): void;
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
  /** Set if an error that is saved under a key is the response to a CANCEL too. */
  readonly savesErrors?: true;
}

/** A fault that holds a request up until it is let through. `there` resolves when the request has arrived. */
export function heldUp(t: TestContext) {
  const there = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  t.after(() => gate.resolve());
  const wait = () => {
    there.resolve();
    return gate.promise;
  };
  return { wait, there: there.promise, letThrough: () => gate.resolve() };
}

/** Sends a FREEZE, and aborts it when its request has arrived. */
async function abortFreeze(provider: PaymentProvider, order: PaymentOrder, there: Promise<void>) {
  const abort = new AbortController();
  const instruction = { ...order, kind: 'FREEZE', instructionId: order.holdId } as const;
  const rejected = assert.rejects(provider.instruct(instruction, abort.signal), /aborted by the test/);
  await there;
  abort.abort(new Error('aborted by the test'));
  await rejected;
}

/** Tests what every provider that is called over HTTP guarantees. */
export function httpSuite(name: string, engine: HttpEngine): void {
  describe(`provider ${name} over HTTP`, () => {
    describe('a call without a response', () => responsePromises(engine));
    describe('CANCEL and FREEZE at the same time', () => crossingPromises(engine));
    describe('idempotency keys that expired', () => keyPromises(engine));
    describe('credentials', () => credentialPromises(engine));
  });
}

/** What goes wrong with a request of a FREEZE, whether it is done, and how the call fails. */
const freezeFaults: readonly (readonly [string, RequestFault | { status: number }, boolean, FailureKind])[] =
  [
    ['the request is lost', 'lose-request', false, 'UNREACHABLE'],
    ['the response is lost', 'lose-answer', true, 'UNREACHABLE'],
    ['500, nothing done', 'fail-and-save', false, 'FAILED'],
    ['500, though all is done', 'do-and-fail', true, 'FAILED'],
    ['401', { status: 401 }, false, 'CREDENTIALS_REJECTED'],
    ['429', { status: 429 }, false, 'OVERLOADED'],
    ['503', { status: 503 }, false, 'FAILED'],
  ];

function responsePromises(engine: HttpEngine): void {
  const hold = engine.freeze.at(-1) ?? assert.fail();

  for (const request of engine.freeze) {
    for (const [what, fault, done, kind] of freezeFaults) {
      const isHeld = done && request === hold;
      test(`FREEZE, ${request.source}, ${what}: ${kind}, and a CANCEL ends it`, async (t) => {
        const { standIn, provider, order, holds } = await engine.open(t);
        const asked = order();
        standIn.failNext(request, fault);
        await assert.rejects(instruct(provider, asked, 'FREEZE'), { name: 'ProviderFailure', kind });
        // There is one attempt only: reconciliation retries.
        const sent = standIn.requests.filter(({ method, path }) => request.test(`${method} ${path}`));
        assert.ok(sent.length <= 1);
        assert.equal((await lookUp(provider, asked)).status, isHeld ? 'HELD' : 'ABSENT');
        if (engine.savesErrors && !isHeld) standIn.forgetKeys();
        const end = isHeld ? 'RETURNED' : 'VOID';
        assert.equal((await instruct(provider, asked, 'CANCEL')).status, end);
        const later = await instruct(provider, asked, 'FREEZE').catch(() => lookUp(provider, asked));
        assert.equal(later.status, end);
        assert.equal(holds(asked), isHeld ? 1 : 0);
      });
    }
  }

  test('the error has no secret and nothing of the buyer', async (t) => {
    const { standIn, provider, order } = await engine.open(t);
    const { buyer } = order();
    for (const status of [401, 429, 500]) {
      standIn.failNext(hold, { status });
      const error = await instruct(provider, order(), 'FREEZE').catch((thrown) => thrown);
      assert.match(error.message, new RegExp(`^\\w+: .*, status ${status}, request req.standin$`));
      const shown = inspect(error, { depth: 9, showHidden: true });
      for (const secret of [
        standIn.apiKey,
        'whsec',
        'token-',
        'hook-secret',
        'secret_standin',
        ...Object.values(buyer ?? {}),
      ])
        assert.ok(!shown.includes(secret), secret);
    }
  });

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
    const url = `http://${await freeAddress()}`;
    const unreachable = { name: 'ProviderFailure', kind: 'UNREACHABLE', message: /, cause ECONNREFUSED$/ };
    await assert.rejects(instruct(openAt(url), order(), 'FREEZE'), unreachable);
  });

  test('a redirect is not followed', async (t) => {
    const { openAt, order } = await engine.open(t);
    let requests = 0;
    const server = createServer(({ url }, response) => {
      requests += 1;
      if (url === '/elsewhere') response.end('{}');
      else response.writeHead(307, { location: '/elsewhere' }).end();
    });
    const url = await listenLocally(t, server, () => server.closeAllConnections());
    await assert.rejects(instruct(openAt(url), order(), 'FREEZE'), { kind: 'UNREACHABLE' });
    assert.equal(requests, 1);
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

function credentialPromises(engine: HttpEngine): void {
  const { signal } = new AbortController();

  test('are checked by reads alone, and rejected for a key that was revoked', async (t) => {
    const { standIn, provider } = await engine.open(t);
    assert.deepEqual(await provider.checkAccess(signal), { kind: 'ACCEPTED' });
    assert.deepEqual(
      standIn.requests.map(({ method }) => method),
      ['GET'],
    );
    standIn.revokeKey(true);
    const revoked = await provider.checkAccess(signal);
    assert.ok(revoked.kind === 'REJECTED' && /401/.test(revoked.why), inspect(revoked));
    assert.ok(!revoked.why.includes(standIn.apiKey));
    standIn.revokeKey(false);
    assert.deepEqual(await provider.checkAccess(signal), { kind: 'ACCEPTED' });
  });

  test('are not known without a response, or with one that says nothing about them', async (t) => {
    const { standIn, provider } = await engine.open(t);
    for (const fault of [{ status: 429 }, { status: 503 }, 'lose-request'] as const) {
      standIn.failNext(/^GET/, fault);
      await assert.rejects(provider.checkAccess(signal), { name: 'ProviderFailure' });
    }
    const { wait, there } = heldUp(t);
    standIn.failNext(/^GET/, { onTheWay: wait });
    const giveUp = new AbortController();
    const asked = provider.checkAccess(giveUp.signal);
    await there;
    giveUp.abort(new Error('no response within a while'));
    await assert.rejects(asked, /no response within a while/);
  });
}
