import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { accessLimits, watchProvider } from '../../src/health/provider-watch.ts';
import { createLog } from '../../src/lib/log.ts';
import type { Access } from '../../src/payments/provider.ts';
import { createManualClock } from '../support/clock.ts';

const accepted: Access = { kind: 'ACCEPTED' };
const rejected: Access = { kind: 'REJECTED', why: 'the key was revoked' };
const unreachable: Access = { kind: 'UNREACHABLE', why: 'nobody there' };

/** A watch over a provider whose response a test sets; undefined for no response. */
function watched(t: TestContext, first: Access | undefined, random = () => 0.5) {
  const clock = createManualClock();
  const lines: { level: number; msg: string; why?: string }[] = [];
  const log = createLog({ write: (line) => lines.push(JSON.parse(line)) });
  let answer = first;
  let asked = 0;
  const provider = {
    checkAccess: async (signal: AbortSignal): Promise<Access> => {
      asked += 1;
      if (answer !== undefined) return answer;
      const { promise, resolve } = Promise.withResolvers<Access>();
      const giveUp = () => resolve({ kind: 'UNREACHABLE', why: signal.reason.message });
      signal.addEventListener('abort', giveUp, { once: true });
      return promise;
    },
  };
  const watch = watchProvider({ provider, name: 'bank', clock, random, log });
  t.after(watch.stop);
  // The provider responds without delay.
  const settle = () => new Promise(setImmediate);
  return {
    ...{ clock, watch, lines, settle },
    asked: () => asked,
    levels: () => lines.map(({ level }) => level),
    /** Sets the response, and advances the clock to the next check. */
    next: async (access: Access | undefined) => {
      answer = access;
      clock.advance(clock.nextDueMs() ?? assert.fail('nothing is to come'));
      await settle();
    },
  };
}

test('the provider is checked at once, and the service is not ready before its response', async (t) => {
  const { watch, asked, levels, settle, next } = watched(t, accepted);
  assert.equal(asked(), 1);
  assert.deepEqual(watch.state(), { credentials: undefined, isReached: undefined });
  assert.match(watch.findFault() ?? '', /^bank has not yet responded/);
  await settle();
  assert.deepEqual(watch.state(), { credentials: 'ACCEPTED', isReached: true });
  assert.equal(watch.findFault(), undefined);
  await next(accepted);
  assert.equal(asked(), 2);
  assert.deepEqual(levels(), [], 'that all is well needs no line');
});

test('rejected credentials are an error once, and a fault of readiness until they are accepted', async (t) => {
  const { watch, lines, levels, settle, next } = watched(t, rejected);
  await settle();
  await next(rejected);
  assert.equal(watch.findFault(), 'bank rejects the credentials: the key was revoked');
  assert.deepEqual(levels(), [50]);
  assert.equal(lines[0]?.why, 'the key was revoked');
  await next(unreachable);
  assert.deepEqual(watch.state(), { credentials: 'REJECTED', isReached: false });
  assert.match(watch.findFault() ?? '', /rejects the credentials/, 'no answer takes nothing back');
  await next(accepted);
  assert.equal(watch.findFault(), undefined);
  assert.deepEqual(levels(), [50, 40, 30]);
});

test('a provider that cannot be reached is a warning and no fault', async (t) => {
  const { watch, levels, settle, next } = watched(t, unreachable);
  await settle();
  assert.deepEqual(watch.state(), { credentials: undefined, isReached: false });
  assert.equal(watch.findFault(), undefined);
  await next(unreachable);
  await next(accepted);
  assert.deepEqual(levels(), [40, 30]);
});

test('a check without a response ends within ten seconds', async (t) => {
  const { clock, watch, lines, settle } = watched(t, undefined);
  await settle();
  assert.ok(accessLimits.answerMs < 10_000);
  clock.advance(accessLimits.answerMs - 1);
  await settle();
  assert.equal(lines.length, 0);
  clock.advance(1);
  await settle();
  assert.match(lines[0]?.why ?? '', /no response within 8 seconds/);
  assert.equal(watch.findFault(), undefined);
});

test('the start waits shortly for the first response', async (t) => {
  const prompt = watched(t, rejected);
  await prompt.watch.answeredWithin(1_000);
  assert.match(prompt.watch.findFault() ?? '', /rejects/);
  const slow = watched(t, undefined);
  let isOver = false;
  const waiting = slow.watch.answeredWithin(1_000).then(() => {
    isOver = true;
  });
  slow.clock.advance(999);
  await slow.settle();
  assert.equal(isOver, false);
  slow.clock.advance(1);
  await waiting;
  assert.match(slow.watch.findFault() ?? '', /has not yet responded/);
});

test('listeners are called at each change, and only then', async (t) => {
  const { watch, settle, next } = watched(t, accepted);
  let changes = 0;
  watch.onChange(() => {
    changes += 1;
  });
  const seen: number[] = [];
  await settle();
  for (const access of [accepted, rejected, rejected, unreachable, unreachable, accepted]) {
    await next(access);
    seen.push(changes);
  }
  assert.deepEqual(seen, [1, 2, 2, 3, 3, 4]);
});

test('checks are spread over time, and a change is known within a minute', async (t) => {
  const { askEveryMs, spreadMs, answerMs } = accessLimits;
  assert.ok(askEveryMs + spreadMs + answerMs < 60_000);
  for (const [dice, dueMs] of [
    [0, askEveryMs - spreadMs],
    [1, askEveryMs + spreadMs],
  ] as const) {
    const { clock, settle } = watched(t, accepted, () => dice);
    await settle();
    assert.equal(clock.nextDueMs(), dueMs);
  }
});

test('no check begins after the stop, even if one is in progress', async (t) => {
  const { clock, watch, asked, lines, settle } = watched(t, undefined);
  watch.stop();
  await settle();
  clock.advance(3_600_000);
  await settle();
  assert.deepEqual([asked(), lines.length], [1, 0]);
});
