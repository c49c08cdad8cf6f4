import { isMessage } from '@bufbuild/protobuf';
import { CreateFilingRequestSchema } from '../gen/artseal/v1/filing_pb.ts';
import type { Books } from './books.ts';
import type { Platform } from './callers.ts';
import type { Answer } from './listener.ts';
import type { Request } from './requests.ts';
import { must } from './violation.ts';

/** A signed call that a platform sent. */
export interface SignedCall {
  /** The name of its session. */
  readonly session: string;
  readonly platform: Platform;
  /** Unique per call. */
  readonly nonce: string;
  readonly key: string | undefined;
  readonly request: Request;
}

/** A signed call with its response, or undefined if the connection was lost. */
export interface Attempt extends SignedCall {
  readonly answer: Answer | undefined;
}

/** Error codes of calls that consume their nonce but do not count. */
const notCounted: readonly string[] = ['IDEMPOTENCY_IN_PROGRESS', 'IDEMPOTENCY_KEY_REUSED', 'QUOTA_EXCEEDED'];

const gotCode = (answer: Answer | undefined, code: string): boolean => answer?.json.code === code;

/** Whether a call with this response has consumed its nonce. */
export const consumesNonce = (answer: Answer): boolean =>
  !gotCode(answer, 'UNAVAILABLE') && !gotCode(answer, 'RATE_LIMITED');

/**
 * Throws a Violation unless the nonce, the idempotency key, the count and the effect of each signed call are stored
 * together or not at all, and stored if the call got a response. No instance of the service runs as long as nonces are
 * retained, so none is deleted.
 */
export function checkAdmissions(books: Books, attempts: ReadonlyMap<string, Attempt>): void {
  const all = [...attempts.values()];
  const isConsumed = ({ platform, nonce }: Attempt) => books.nonces.has(platform.apiKey, nonce);
  for (const attempt of all) {
    const { session, nonce, answer } = attempt;
    const isLost = answer !== undefined && consumesNonce(answer) && !isConsumed(attempt);
    must(!isLost, session, `a client got a response, but its nonce ${nonce} is not consumed`);
    const isWasted = gotCode(answer, 'RATE_LIMITED') && isConsumed(attempt);
    must(!isWasted, session, `a call got RATE_LIMITED, but its nonce ${nonce} is consumed`);
  }
  const admitted = all.filter(isConsumed);
  const { count } = books.nonces;
  must(
    count === admitted.length,
    'world',
    `${count} nonces are stored, but ${admitted.length} calls consumed one`,
  );
  checkUsage(books, admitted);
  checkFilings(books, all, admitted);
}

/** The count of each caller equals its admitted calls without replayed responses. */
function checkUsage({ usage }: Books, admitted: readonly Attempt[]): void {
  for (const [{ caller, callerId, monthlyQuota }, calls] of Map.groupBy(
    admitted,
    ({ platform }) => platform,
  )) {
    const areCounted = calls.map(isCounted);
    const least = areCounted.filter((is) => is === true).length;
    const most = areCounted.filter((is) => is !== false).length;
    const counted = usage.get(callerId) ?? 0;
    const message = `${caller} made ${least} to ${most} calls that count; ${counted} are counted`;
    must(least <= counted && counted <= most, 'world', message);
    const isExceeded = calls.some(({ answer }) => gotCode(answer, 'QUOTA_EXCEEDED'));
    const isWithin = monthlyQuota === undefined || counted <= monthlyQuota;
    must(isWithin, 'world', `${counted} calls of ${caller} are counted, but its quota is ${monthlyQuota}`);
    must(
      !isExceeded || counted === monthlyQuota,
      'world',
      `${caller} got QUOTA_EXCEEDED at ${counted} of ${monthlyQuota} calls`,
    );
  }
}

/** Whether a call counts; undefined if the response does not show it. */
function isCounted({ answer, key, platform, request }: Attempt): boolean | undefined {
  const isKnown = answer !== undefined && consumesNonce(answer);
  // A retry during its pending instruction does not count, but its response is that of a first call.
  if (isKnown && key !== undefined && authorOf({ request }) === undefined) return undefined;
  if (isKnown) return !answer.isReplay && !notCounted.includes(answer.json.code);
  // A call without a response may have been a retry, or have exceeded the quota.
  return key === undefined && platform.monthlyQuota === undefined ? true : undefined;
}

/** Whether an admitted call filed nothing because the wall clock was behind the newest record. */
const isRejectedByClock = ({ answer }: Attempt): boolean =>
  gotCode(answer, 'UNAVAILABLE') && /behind the newest record/.test(answer?.json.message);

/**
 * Each admitted call to file stored one filing, and all calls under one key together stored one. A call without a
 * response may have been rejected because of the clock.
 */
function checkFilings({ filings, keys }: Books, all: readonly Attempt[], admitted: readonly Attempt[]): void {
  const filed = Map.groupBy(filings, ({ author }) => author);
  const admittedOf = Map.groupBy(
    admitted.filter((attempt) => !isRejectedByClock(attempt)),
    authorOf,
  );
  for (const { session, key, request } of all) {
    const author = authorOf({ request });
    if (author === undefined) continue;
    const calls = admittedOf.get(author) ?? [];
    const known = calls.filter(({ answer }) => answer !== undefined);
    const { length: count } = filed.get(author) ?? [];
    const filedAtMost = ({ length }: readonly Attempt[]) =>
      key === undefined ? length : Math.min(1, length);
    const [least, most] = [filedAtMost(known), filedAtMost(calls)] as const;
    const message = `${calls.length} calls to file ${author} were admitted with ${key ?? 'no key'}`;
    must(least <= count && count <= most, session, `${message}; it is filed ${count} times`);
    if (key !== undefined)
      must(keys.has(key) === (count === 1), session, `${key} and its filing are not stored together`);
  }
  const authorOfNumber = new Map(filings.map(({ filingNo, author }) => [filingNo, author]));
  for (const { session, answer, request } of admitted) {
    const author = authorOf({ request });
    if (author === undefined || answer?.status !== 200) continue;
    const { filingNo } = answer.json;
    const found = authorOfNumber.get(filingNo);
    must(found === author, session, `a client saw ${filingNo} for ${author}, but its author is ${found}`);
  }
}

/** The author in a call to file; undefined for other calls. */
function authorOf({ request: { message } }: Pick<Attempt, 'request'>): string | undefined {
  return isMessage(message, CreateFilingRequestSchema) ? message.author : undefined;
}
