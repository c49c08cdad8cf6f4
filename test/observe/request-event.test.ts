import assert from 'node:assert/strict';
import { test } from 'node:test';
import pino from 'pino';
import { type Reason, Refusal, reasons } from '../../src/domain/reason.ts';
import { logCall } from '../../src/observe/request-event.ts';

const { info, warn, error } = pino.levels.values;

const levels: readonly (readonly [reason: Reason, what: string, level: number | undefined])[] = [
  ['SIGNATURE_INVALID', 'what a caller does wrong', info],
  ['METHOD_NOT_ALLOWED', 'what a caller does wrong', info],
  ['TIMEOUT', 'time that a caller does not give', warn],
  ['PAYMENT_PENDING', 'what recovery is at work on', warn],
  ['INTERNAL', 'a fault of the service', error],
  ['UNAVAILABLE', 'a fault of the service', error],
];

for (const [reason, what, level] of levels) {
  test(`${reason}, ${what}, is logged as ${pino.levels.labels[level ?? 0]}`, () => {
    const lines: string[] = [];
    const log = pino({}, { write: (line) => lines.push(line) });
    logCall(log, { requestId: '1', refusal: new Refusal(reason, 'x') }, reasons[reason].http, 1);
    assert.deepEqual(
      lines.map((line) => JSON.parse(line).level),
      [level],
    );
  });
}
