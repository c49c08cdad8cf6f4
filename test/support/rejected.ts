import assert from 'node:assert/strict';
import { ApiError, type Reason, reasons } from '../../src/domain/reason.ts';
import type { RestAnswer } from './signed-request.ts';

/** A request id. */
export const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Asserts that a response is the error of this reason, and that its message matches. */
export function assertRejected(
  answer: RestAnswer,
  status: number,
  code: Reason,
  ...message: readonly RegExp[]
): void {
  assert.equal(answer.json?.code, code, answer.text);
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.headers['content-type'], 'application/json');
  assert.deepEqual(Object.keys(answer.json), ['code', 'message', 'requestId']);
  assert.match(answer.json.requestId, uuidV7);
  assert.equal(answer.json.requestId, answer.headers['x-request-id']);
  assert.equal(answer.headers.link, `</docs/errors#${code}>; rel="help"`);
  assert.ok(answer.json.message.length > 0);
  for (const pattern of message) assert.match(answer.json.message, pattern);
}

/** For assert.throws and assert.rejects: an ApiError of this reason whose message matches. */
export function apiError(reason: Reason, message = /./): (error: unknown) => true {
  assert.ok(reason in reasons);
  return (error) => {
    assert.ok(error instanceof ApiError, String(error));
    assert.equal(error.reason, reason);
    assert.match(error.message, message);
    return true;
  };
}
