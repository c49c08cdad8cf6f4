import assert from 'node:assert/strict';
import { test } from 'node:test';
import { logCall, type RequestEvent } from '../../src/api/call-observer.ts';
import { ApiError, type Reason, reasons } from '../../src/domain/reason.ts';
import { createLog, logLevels } from '../../src/lib/log.ts';

const { debug, info, warn, error } = logLevels;

const levels: readonly (readonly [reason: Reason, what: string, level: number | undefined])[] = [
  ['SIGNATURE_INVALID', 'what a caller does wrong', info],
  ['METHOD_NOT_ALLOWED', 'what a caller does wrong', info],
  ['CANCELLED', 'a call that its client gives up', info],
  ['TIMEOUT', 'time that a caller does not give', info],
  ['PAYMENT_PENDING', 'what recovery is at work on', warn],
  ['INTERNAL', 'a fault of the service', error],
  ['UNAVAILABLE', 'a fault of the service', error],
];

/** The levels of the log lines of a call. */
function levelsOf(event: RequestEvent, status: number): number[] {
  const lines: string[] = [];
  const log = createLog({ write: (line) => lines.push(line), level: 'debug' });
  logCall(log, event, status, 1);
  return lines.map((line) => JSON.parse(line).level);
}

for (const [reason, what, level] of levels) {
  test(`${reason}, ${what}, is logged at level ${level}`, () => {
    const apiError = new ApiError(reason, 'x');
    assert.deepEqual(levelsOf({ requestId: '1', apiError }, reasons[reason].http), [level]);
  });
}

test('a health probe is logged at debug level, unless it fails for another reason than UNAVAILABLE', () => {
  const probe = { requestId: '1', isProbe: true };
  assert.deepEqual(levelsOf(probe, 200), [debug]);
  assert.deepEqual(levelsOf({ ...probe, apiError: new ApiError('UNAVAILABLE', 'x') }, 503), [debug]);
  assert.deepEqual(levelsOf({ ...probe, apiError: new ApiError('METHOD_NOT_ALLOWED', 'x') }, 405), [info]);
  assert.deepEqual(levelsOf({ ...probe, apiError: new ApiError('INTERNAL', 'x') }, 500), [error]);
});

test('UNAVAILABLE of a public route is logged as information', () => {
  const open = { requestId: '1', mayBeUnavailable: true };
  assert.deepEqual(levelsOf({ ...open, apiError: new ApiError('UNAVAILABLE', 'x') }, 503), [info]);
  assert.deepEqual(levelsOf({ ...open, apiError: new ApiError('INTERNAL', 'x') }, 500), [error]);
});
