import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code } from '@connectrpc/connect';
import { EscrowService } from '../../../gen/artseal/v1/escrow_pb.ts';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from '../../../gen/google/rpc/error_details_pb.ts';
import { ApiError, type Reason, reasons, toApiError } from '../../../src/domain/reason.ts';
import { ValidationError } from '../../../src/domain/violation.ts';
import { toConnectError } from '../../../src/http/connect/errors.ts';

/** The status codes of gRPC, by their names in Connect. */
const codes: Record<string, Code> = {
  invalid_argument: 3,
  deadline_exceeded: 4,
  not_found: 5,
  permission_denied: 7,
  resource_exhausted: 8,
  failed_precondition: 9,
  aborted: 10,
  canceled: 1,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  data_loss: 15,
  unauthenticated: 16,
};

for (const [reason, { code }] of Object.entries(reasons)) {
  test(`${reason} has the code ${code}`, () => {
    const error = toConnectError(new ApiError(reason as Reason, 'A sentence.'), 'the request id');
    assert.equal(error.code, codes[code]);
    assert.equal(error.rawMessage, 'A sentence.');
    const details = error.findDetails(ErrorInfoSchema);
    assert.equal(details.length, 1);
    assert.equal(details[0]?.reason, reason);
    assert.equal(details[0]?.domain, 'artseal');
    assert.deepEqual(details[0]?.metadata, { requestId: 'the request id' });
    assert.equal(error.metadata.has('Retry-After'), false);
    assert.deepEqual(error.findDetails(RetryInfoSchema), []);
  });
}

test('BadRequest names invalid fields as the proto does', () => {
  const violations = [
    { field: 'buyerId', rule: 'is required' },
    { field: 'nowhere', rule: 'is not part of this request' },
  ];
  const error = toConnectError(
    new ValidationError('VALIDATION_FAILED', violations),
    'r',
    undefined,
    EscrowService.method.createEscrow.input,
  );
  const [invalid, ...more] = error.findDetails(BadRequestSchema);
  assert.deepEqual(
    [...(invalid?.fieldViolations ?? [])].map(({ field, description }) => [field, description]),
    [
      ['buyer_id', 'is required'],
      ['nowhere', 'is not part of this request'],
    ],
  );
  assert.deepEqual(more, []);
  const elsewhere = toConnectError(new ValidationError('ESCROW_NOT_FOUND', violations), 'r');
  assert.deepEqual(elsewhere.findDetails(BadRequestSchema), []);
});

test('RetryInfo and Retry-After have the time to wait', () => {
  const error = toConnectError(new ApiError('RATE_LIMITED', 'Later.', { retryAfterS: 7 }), 'r');
  assert.equal(error.metadata.get('Retry-After'), '7');
  const [retry, ...more] = error.findDetails(RetryInfoSchema);
  assert.deepEqual([retry?.retryDelay?.seconds, retry?.retryDelay?.nanos, more], [7n, 0, []]);
});

test('an unknown error shows nothing to a client', () => {
  for (const thrown of [new Error('secret'), 'secret', { secret: 1 }, undefined, null]) {
    const error = toConnectError(toApiError(thrown), 'r');
    assert.equal(error.code, Code.Internal);
    assert.equal(error.cause, undefined);
    assert.ok(!JSON.stringify([error.message, [...error.metadata]]).includes('secret'));
  }
});
