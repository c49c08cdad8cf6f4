import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError, reasons, toApiError, unavailable } from '../../src/domain/reason.ts';
import { rejectViolations } from '../../src/domain/violation.ts';
import { apiError } from '../support/rejected.ts';

/** The published dictionary: reason, HTTP status, status code of the internal API. */
const dictionary = `
  AUTH_HEADER_MISSING 401 unauthenticated
  AUTH_HEADER_INVALID 401 unauthenticated
  TIMESTAMP_EXPIRED 401 unauthenticated
  SIGNATURE_INVALID 401 unauthenticated
  NONCE_REUSED 401 unauthenticated
  KEY_SUSPENDED 403 permission_denied
  PERMISSION_DENIED 403 permission_denied
  RATE_LIMITED 429 resource_exhausted
  QUOTA_EXCEEDED 429 resource_exhausted
  BAD_REQUEST_TARGET 400 invalid_argument
  INVALID_JSON 400 invalid_argument
  VALIDATION_FAILED 400 invalid_argument
  BODY_TOO_LARGE 413 resource_exhausted
  UNSUPPORTED_MEDIA_TYPE 415 invalid_argument
  NOT_FOUND 404 not_found
  METHOD_NOT_ALLOWED 405 unimplemented
  FILING_NOT_FOUND 404 not_found
  ESCROW_NOT_FOUND 404 not_found
  ESCROW_ACTIVE 409 failed_precondition
  TRANSFERS_EXHAUSTED 409 failed_precondition
  ESCROW_STATE_CONFLICT 409 failed_precondition
  LINK_NOT_FOUND 404 not_found
  EVENTS_EXPIRED 410 failed_precondition
  WEBHOOK_NOT_FOUND 404 not_found
  WEBHOOKS_EXHAUSTED 409 failed_precondition
  WEBHOOK_DISABLED 409 failed_precondition
  PAYMENT_DECLINED 402 failed_precondition
  PAYMENT_PENDING 503 aborted
  IDEMPOTENCY_KEY_INVALID 400 invalid_argument
  IDEMPOTENCY_KEY_REUSED 422 invalid_argument
  IDEMPOTENCY_IN_PROGRESS 409 aborted
  FILING_NUMBERS_EXHAUSTED 503 resource_exhausted
  FILING_CAP_REACHED 429 resource_exhausted
  ESCROW_NUMBERS_EXHAUSTED 503 resource_exhausted
  BACKUP_FAILED 409 failed_precondition
  RECORD_DAMAGED 500 data_loss
  INTERNAL 500 internal
  UNAVAILABLE 503 unavailable
  TIMEOUT 504 deadline_exceeded
  CANCELLED 499 canceled`;

test('every reason has its published HTTP status and status code, and there are no others', () => {
  const rows = dictionary
    .trim()
    .split('\n')
    .map((line) => line.trim().split(' '));
  const published = Object.fromEntries(
    rows.map(([reason, http, code]) => [reason, { http: Number(http), code }]),
  );
  assert.deepEqual(reasons, published);
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
