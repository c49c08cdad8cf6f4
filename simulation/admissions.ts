import { isMessage } from '@bufbuild/protobuf';
import { CreateFilingRequestSchema } from '../gen/artseal/v1/filing_pb.ts';
import type { Books } from './books.ts';
import type { Platform } from './callers.ts';
import type { Answer } from './listener.ts';
import type { Request } from './requests.ts';
import { must } from './violation.ts';

/** A signed call as it was sent once. */
export interface SignedCall {
  /** The name of the session that it belongs to. */
  readonly session: string;
  readonly platform: Platform;
  /** No other call has it. */
  readonly nonce: string;
  readonly key: string | undefined;
  readonly request: Request;
}

/** A signed call with its response, if there was one. */
export interface Attempt extends SignedCall {
  readonly answer: Answer | undefined;
}

/** Reasons of calls that consumed their nonce and are not counted. */
const notCounted: readonly string[] = ['IDEMPOTENCY_IN_PROGRESS', 'IDEMPOTENCY_KEY_REUSED', 'QUOTA_EXCEEDED'];

const gotCode = (answer: Answer | undefined, code: string): boolean => answer?.json.code === code;

/** Whether a call with this response consumed its nonce. */
export const consumesNonce = (answer: Answer): boolean =>
  !gotCode(answer, 'UNAVAILABLE') && !gotCode(answer, 'RATE_LIMITED');

/**
 * Throws a Violation unless the books have of each signed call all or nothing: its nonce, its idempotency key, its count
 * and its effect; and all of it if the call was answered. No life is as long as nonces are remembered, so that none is
 * swept away.
 */
export function checkAdmissions(books: Books, attempts: ReadonlyMap<string, Attempt>): void {
  const all = [...attempts.values()];
  const isSpent = ({ platform, nonce }: Attempt) => books.nonces.has(platform.apiKey, nonce);
  for (const attempt of all) {
    const { session, nonce, answer } = attempt;
    const isForgotten = answer !== undefined && consumesNonce(answer) && !isSpent(attempt);
    must(!isForgotten, session, `a client was answered, and its nonce ${nonce} is not spent`);
    const isTooSoon = gotCode(answer, 'RATE_LIMITED') && isSpent(attempt);
    must(!isTooSoon, session, `its call came too soon, and cost the nonce ${nonce}`);
  }
  const admitted = all.filter(isSpent);
  const { count } = books.nonces;
  must(count === admitted.length, 'world', `${count} nonces are spent, of calls only ${admitted.length}`);
  checkUsage(books, admitted);
  checkFilings(books, all, admitted);
}

/** Each caller's count is that of the calls let in, except for repetitions of what was answered before. */
function checkUsage({ usage }: Books, admitted: readonly Attempt[]): void {
  for (const [{ caller, callerId, monthlyQuota }, calls] of Map.groupBy(
    admitted,
    ({ platform }) => platform,
  )) {
    const counts = calls.map(isCounted);
    const least = counts.filter((isOne) => isOne === true).length;
    const most = counts.filter((isOne) => isOne !== false).length;
    const counted = usage.get(callerId) ?? 0;
    const message = `${caller} made ${least} to ${most} calls that count; ${counted} are counted`;
    must(least <= counted && counted <= most, 'world', message);
    const isExceeded = calls.some(({ answer }) => gotCode(answer, 'QUOTA_EXCEEDED'));
    const isWithin = monthlyQuota === undefined || counted <= monthlyQuota;
    must(isWithin, 'world', `${counted} calls of ${caller} are counted; its quota is ${monthlyQuota}`);
    must(
      !isExceeded || counted === monthlyQuota,
      'world',
      `${caller} had calls left; ${counted} are counted`,
    );
  }
}

/** Undefined if it is not known. */
function isCounted({ answer, key, platform, request }: Attempt): boolean | undefined {
  const isKnown = answer !== undefined && consumesNonce(answer);
  // A repetition that meets its instruction under way is not counted, but looks like a first call that is pending.
  if (isKnown && key !== undefined && authorOf({ request }) === undefined) return undefined;
  if (isKnown) return !answer.isReplay && !notCounted.includes(answer.json.code);
  // What was not answered may have been a repetition, or one too many.
  return key === undefined && platform.monthlyQuota === undefined ? true : undefined;
}

/** Whether an admitted call was rejected because the wall clock was before the newest record, and filed nothing. */
const isRefusedByClock = ({ answer }: Attempt): boolean =>
  gotCode(answer, 'UNAVAILABLE') && /behind the newest record/.test(answer?.json.message);

/**
 * Each admitted call to file filed once; those under one key filed once together. If a call got no response, it may have been
 * rejected because of the clock.
 */
function checkFilings({ filings, keys }: Books, all: readonly Attempt[], admitted: readonly Attempt[]): void {
  const filed = Map.groupBy(filings, ({ author }) => author);
  const admittedOf = Map.groupBy(
    admitted.filter((attempt) => !isRefusedByClock(attempt)),
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
    const message = `${calls.length} calls to file ${author} were let in ${key ?? 'without a key'}`;
    must(least <= count && count <= most, session, `${message}; it is filed ${count} times`);
    if (key !== undefined)
      must(keys.has(key) === (count === 1), session, `${key} is forgotten, or a claim only`);
  }
  const authorOfNumber = new Map(filings.map(({ filingNo, author }) => [filingNo, author]));
  for (const { session, answer, request } of admitted) {
    const author = authorOf({ request });
    if (author === undefined || answer?.status !== 200) continue;
    const { filingNo } = answer.json;
    const found = authorOfNumber.get(filingNo);
    must(found === author, session, `a client saw ${filingNo} for ${author}; it is of ${found}`);
  }
}

/** Who made what a call files; undefined if it files nothing. */
function authorOf({ request: { message } }: Pick<Attempt, 'request'>): string | undefined {
  return isMessage(message, CreateFilingRequestSchema) ? message.author : undefined;
}
