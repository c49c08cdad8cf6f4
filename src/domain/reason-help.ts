import type { Reason } from './reason.ts';

/** What a reason means to a client. Both are whole sentences; what stands between backticks is code. */
export interface ReasonHelp {
  /** When a call fails with it. */
  readonly condition: string;
  /** What the client does about it. */
  readonly action: string;
}

/** The documentation of each reason; the page /docs/errors is made of it. */
export const reasonHelp: Readonly<Record<Reason, ReasonHelp>> = {
  AUTH_HEADER_MISSING: {
    condition:
      'One of the four headers of a signed request, or the bearer token of an internal call, is absent or empty.',
    action:
      'Send `X-Api-Key`, `X-Timestamp`, `X-Nonce` and `X-Signature`, or `Authorization: Bearer` with a token.',
  },
  AUTH_HEADER_INVALID: {
    condition:
      'One of these headers is malformed or was sent twice, or the token is unknown, expired or revoked.',
    action: 'Correct the header that `message` names. Ask the operator for another token.',
  },
  TIMESTAMP_EXPIRED: {
    condition:
      '`X-Timestamp` is more than 300 seconds from the server’s clock, or is not Unix time in seconds.',
    action:
      'Set your clock; `X-Server-Time` of the response has the time of the server. Then sign the request again.',
  },
  SIGNATURE_INVALID: {
    condition: 'The key is unknown or revoked, or the signature does not match.',
    action:
      '`message` ends with the text that the server expected to be signed. Compare it with yours byte by byte.',
  },
  NONCE_REUSED: {
    condition:
      'The key has used this nonce before. A retry with the bytes of an earlier request is rejected, too.',
    action: 'Sign the request again with a new timestamp and a new nonce.',
  },
  KEY_SUSPENDED: {
    condition: 'The operator has suspended the key or its platform.',
    action: 'Ask the operator.',
  },
  PERMISSION_DENIED: {
    condition: 'The caller is known, but may not call this operation.',
    action: 'Ask the operator for a token with the scope that `message` names.',
  },
  RATE_LIMITED: {
    condition:
      'The platform sends more calls a second than its tier allows, or too many calls wait at the same time.',
    action: 'Wait for the seconds in `Retry-After`, then sign the request again.',
  },
  QUOTA_EXCEEDED: {
    condition: 'The calls of the month are used up.',
    action: '`Retry-After` lasts until the month ends. Ask the operator for a higher quota.',
  },
  BAD_REQUEST_TARGET: {
    condition:
      'The request line, its target, `Host` or `Transfer-Encoding` is malformed, too long, or can be read in two ways.',
    action: 'Correct what `message` names.',
  },
  INVALID_JSON: {
    condition: 'The body is not one JSON object in UTF-8, or repeats a member.',
    action: 'Correct the body; `message` says where it breaks.',
  },
  VALIDATION_FAILED: {
    condition: 'Fields or query parameters break their rules, or are unknown.',
    action: '`message` names each field and its rule. Correct them.',
  },
  BODY_TOO_LARGE: {
    condition: 'The body or message has more than 65,536 bytes.',
    action: 'Send less.',
  },
  UNSUPPORTED_MEDIA_TYPE: {
    condition: 'The body is not of a type or encoding that the operation takes.',
    action: 'Send `Content-Type: application/json` and no `Content-Encoding`.',
  },
  NOT_FOUND: {
    condition: 'There is no such route, method or thing.',
    action: 'Compare the path with the OpenAPI document.',
  },
  METHOD_NOT_ALLOWED: {
    condition: 'The route does not take this HTTP method.',
    action: 'Use a method that the header `Allow` names.',
  },
  FILING_NOT_FOUND: {
    condition:
      'The number names no filing that the caller may see, or the filing was erased after its retention.',
    action: 'Check the number.',
  },
  ESCROW_NOT_FOUND: {
    condition: 'The id names no order of the caller.',
    action: 'Check the id. Another platform’s order is not found, either.',
  },
  ESCROW_ACTIVE: {
    condition: 'The filing has an order that is `UNPAID` or `FROZEN`.',
    action: 'Release or refund that order first; `message` names it if it is yours.',
  },
  TRANSFERS_EXHAUSTED: {
    condition: 'The filing has as many transfers as a filing may have.',
    action: 'The work cannot be sold again under this number.',
  },
  ESCROW_STATE_CONFLICT: {
    condition: 'The state of the order does not allow this.',
    action: 'Read the order, and decide by its `state` and `pending`.',
  },
  EVENTS_EXPIRED: {
    condition: 'The cursor has expired: the events after it are older than 30 days.',
    action: 'Read your filings and orders, then continue without the cursor `after`.',
  },
  FILING_CAP_REACHED: {
    condition: 'The platform has used all filing numbers that its cap allows this year.',
    action: 'Ask the operator for a higher cap, or file again next year. Retry-After says how long that is.',
  },
  LINK_NOT_FOUND: {
    condition: 'The id names no link of this filing.',
    action: 'Check the id. List the links of the filing to find it.',
  },
  WEBHOOK_NOT_FOUND: {
    condition: 'The id names no webhook of the caller.',
    action: 'Check the id.',
  },
  WEBHOOKS_EXHAUSTED: {
    condition: 'The caller has ten webhooks.',
    action: 'Delete one first.',
  },
  WEBHOOK_DISABLED: {
    condition: 'The webhook is disabled.',
    action: 'Enable it first.',
  },
  PAYMENT_DECLINED: {
    condition:
      'The payment provider declined. A new order is `CLOSED`; a release or refund leaves its order as it was.',
    action: '`message` says why. Correct that, then open another order, or release or refund again.',
  },
  PAYMENT_PENDING: {
    condition: 'The payment provider has not confirmed yet. The order is stored and is pursued by itself.',
    action: 'Read the order after `Retry-After`, or wait for its event. Do not open another one.',
  },
  IDEMPOTENCY_KEY_INVALID: {
    condition: '`Idempotency-Key` is malformed or was sent twice.',
    action: 'Send 1 to 255 visible ASCII characters, once.',
  },
  IDEMPOTENCY_KEY_REUSED: {
    condition: 'Another request was sent with this `Idempotency-Key`.',
    action: 'Use a new key for a new request.',
  },
  IDEMPOTENCY_IN_PROGRESS: {
    condition: 'The first request with this `Idempotency-Key` is still running.',
    action: 'Send the same request again a little later.',
  },
  FILING_NUMBERS_EXHAUSTED: {
    condition: 'All 999,999 filing numbers of the year are used.',
    action: 'Ask the operator. Numbers are free again when the year ends.',
  },
  ESCROW_NUMBERS_EXHAUSTED: {
    condition: 'All order ids of the year are used.',
    action: 'Ask the operator. Ids are free again when the year ends.',
  },
  BACKUP_FAILED: {
    condition: 'A backup could not be taken, rotated or read. Only the internal API has this code.',
    action: '`message` says why. Correct that, then call again.',
  },
  RECORD_DAMAGED: {
    condition:
      'The stored record is not the one that the evidence log proves, so the registry does not return it.',
    action:
      'Send the operator the request id and the number. Evidence that you kept still proves what was recorded.',
  },
  INTERNAL: {
    condition: 'The service failed.',
    action: 'Send the operator the request id. Retry under the same `Idempotency-Key`.',
  },
  UNAVAILABLE: {
    condition:
      'The service is overloaded, stops, or cannot store anything now. The message says if nothing was stored.',
    action: 'Retry after `Retry-After`, under the same `Idempotency-Key`.',
  },
  TIMEOUT: {
    condition: 'The request did not arrive in time, or its deadline passed. It may still be carried out.',
    action: 'Retry under the same `Idempotency-Key`, with a longer deadline.',
  },
  CANCELLED: {
    condition: 'The client cancelled the call before the response. The call may still take effect.',
    action:
      'Retry under the same `Idempotency-Key`. Only the log and the metrics of the service show this code.',
  },
};
