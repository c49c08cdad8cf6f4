import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError, reasons, toApiError, unavailable } from '../../src/domain/reason.ts';
import { checkRange, rejectViolations } from '../../src/domain/violation.ts';
import { apiError } from '../support/rejected.ts';

/** The published status codes of the internal API. test/openapi.test.ts has the HTTP statuses of the reasons in openapi.yaml. */
const published = {
  unauthenticated: 'AUTH_HEADER_MISSING AUTH_HEADER_INVALID TIMESTAMP_EXPIRED SIGNATURE_INVALID NONCE_REUSED',
  permission_denied: 'KEY_SUSPENDED PERMISSION_DENIED',
  resource_exhausted:
    'RATE_LIMITED QUOTA_EXCEEDED BODY_TOO_LARGE FILING_NUMBERS_EXHAUSTED FILING_CAP_REACHED ESCROW_NUMBERS_EXHAUSTED',
  invalid_argument:
    'BAD_REQUEST_TARGET INVALID_JSON VALIDATION_FAILED UNSUPPORTED_MEDIA_TYPE IDEMPOTENCY_KEY_INVALID IDEMPOTENCY_KEY_REUSED',
  not_found: 'NOT_FOUND FILING_NOT_FOUND ESCROW_NOT_FOUND LINK_NOT_FOUND WEBHOOK_NOT_FOUND',
  unimplemented: 'METHOD_NOT_ALLOWED',
  failed_precondition:
    'ESCROW_ACTIVE TRANSFERS_EXHAUSTED ESCROW_STATE_CONFLICT EVENTS_EXPIRED WEBHOOKS_EXHAUSTED WEBHOOK_DISABLED PAYMENT_DECLINED BACKUP_FAILED',
  aborted: 'PAYMENT_PENDING IDEMPOTENCY_IN_PROGRESS',
  data_loss: 'RECORD_DAMAGED',
  internal: 'INTERNAL',
  unavailable: 'UNAVAILABLE',
  deadline_exceeded: 'TIMEOUT',
  canceled: 'CANCELLED',
};

test('every reason has its published status code, and there are no others', () => {
  const expected = Object.entries(published).flatMap(([code, of]) =>
    of.split(' ').map((reason) => [reason, code]),
  );
  const codes = Object.entries(reasons).map(([reason, { code }]) => [reason, code]);
  assert.deepEqual(codes.toSorted(), expected.toSorted());
  assert.deepEqual([reasons.BACKUP_FAILED.http, reasons.CANCELLED.http], [409, 499]);
});

test('an unknown error becomes INTERNAL without details, with its cause for the log', () => {
  const cause = new TypeError('SELECT secret FROM api_key');
  const error = toApiError(cause);
  assert.equal(error.reason, 'INTERNAL');
  assert.doesNotMatch(error.message, /SELECT|secret|api_key|TypeError/);
  assert.equal(error.cause, cause);
  for (const thrown of [undefined, null, 'text', 7]) assert.equal(toApiError(thrown).reason, 'INTERNAL');
});

test('an ApiError is returned as it is', () => {
  const error = new ApiError('ESCROW_ACTIVE', 'x');
  assert.equal(toApiError(error), error);
});

test('UNAVAILABLE has a Retry-After', () => {
  const error = unavailable('full');
  assert.equal(error.reason, 'UNAVAILABLE');
  assert.ok((error.hints.retryAfterS ?? 0) >= 1);
});

test('violations become one ApiError that names each field once', () => {
  rejectViolations([]);
  const violations = [
    { field: 'author', rule: 'is required' },
    { field: 'price', rule: 'must be a number' },
    { field: 'author', rule: 'must be short' },
  ];
  const both = /^author is required; price must be a number$/;
  assert.throws(() => rejectViolations(violations), apiError('VALIDATION_FAILED', both));
});

test('the message of many violations is bounded and counts the others', () => {
  const violations = Array.from({ length: 5_000 }, (_, index) => ({ field: `f${index}`, rule: 'is wrong' }));
  assert.throws(
    () => rejectViolations(violations),
    (error) => {
      assert.ok(error instanceof ApiError);
      assert.match(error.message, /^f0 is wrong; f1 is wrong; .*and 4980 more$/);
      return error.message.length < 1_000;
    },
  );
});

test('a whole number is within its bounds, both included', () => {
  const bounds = { min: 0, max: 30 };
  for (const value of [0, 1, 30]) assert.deepEqual(checkRange('waitSeconds', value, bounds), []);
  const broken = { field: 'waitSeconds', rule: 'must be an integer from 0 to 30' };
  for (const value of [-1, 31, 1.5, Number.NaN, Number.POSITIVE_INFINITY])
    assert.deepEqual(checkRange('waitSeconds', value, bounds), [broken]);
});
