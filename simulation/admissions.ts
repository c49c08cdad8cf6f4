import { isMessage } from '@bufbuild/protobuf';
import { CreateFilingRequestSchema } from '../gen/artseal/v1/filing_pb.ts';
import type { Books } from './books.ts';
import type { Answer } from './door.ts';
import type { Request } from './requests.ts';
import { must } from './violation.ts';

/** A signed call as it was sent once. */
export interface SignedCall {
  /** The name of the session that it belongs to. */
  readonly session: string;
  readonly callerId: number;
  /** No other call has it. */
  readonly nonce: string;
  readonly key: string | undefined;
  readonly request: Request;
}

/** A signed call, and what came of it as far as is known. */
export interface Attempt extends SignedCall {
  readonly answer: Answer | undefined;
}

/** Refusals after which the nonce of a call may be as good as new. */
const beforeAdmission: readonly string[] = ['UNAVAILABLE'];
/** Refusals of calls that are let in and not counted. */
const notCounted: readonly string[] = ['IDEMPOTENCY_IN_PROGRESS', 'IDEMPOTENCY_KEY_REUSED'];

/** Whether a call that was answered so was let in. */
export const isAdmitted = ({ json }: Answer): boolean => !beforeAdmission.includes(json.code);

/**
 * Throws a Violation unless the books have of each signed call all or nothing: its nonce, its idempotency key, its count
 * and its effect; and all of it if the call was answered. No life is as long as nonces are remembered, so that none is
 * swept away.
 */
export function checkAdmissions(books: Books, attempts: ReadonlyMap<string, Attempt>): void {
  const all = [...attempts.values()];
  for (const { session, nonce, answer } of all) {
    const isForgotten = answer !== undefined && isAdmitted(answer) && !books.nonces.has(nonce);
    must(!isForgotten, session, `a client was answered, and its nonce ${nonce} is not spent`);
  }
  for (const [nonce, callerId] of books.nonces) {
    must(attempts.get(nonce)?.callerId === callerId, nonce, `it is spent, and ${callerId} never sent it`);
  }
  const admitted = all.filter(({ nonce }) => books.nonces.has(nonce));
  checkUsage(books, admitted);
  checkFilings(books, all, admitted);
}

/** Each caller's count is that of the calls let in, except for repetitions of what was answered before. */
function checkUsage({ usage }: Books, admitted: readonly Attempt[]): void {
  const byCaller = Map.groupBy(admitted, ({ callerId }) => callerId);
  for (const callerId of new Set([...usage.keys(), ...byCaller.keys()])) {
    const counts = (byCaller.get(callerId) ?? []).map(isCounted);
    const least = counts.filter((isOne) => isOne === true).length;
    const most = counts.filter((isOne) => isOne !== false).length;
    const counted = usage.get(callerId) ?? 0;
    const told = `caller ${callerId} made ${least} to ${most} calls that count; ${counted} are counted`;
    must(least <= counted && counted <= most, 'world', told);
  }
}

/** Undefined if nobody can tell. */
function isCounted({ answer, key }: Attempt): boolean | undefined {
  const isKnown = answer !== undefined && isAdmitted(answer);
  // What was not answered may have been a repetition.
  if (!isKnown) return key === undefined ? true : undefined;
  return !answer.isReplay && !notCounted.includes(answer.json.code);
}

/** Each call to file that was let in filed once; those under one key filed once together. */
function checkFilings({ filings, keys }: Books, all: readonly Attempt[], admitted: readonly Attempt[]): void {
  const filed = Map.groupBy(filings, ({ author }) => author);
  const admittedOf = Map.groupBy(admitted, authorOf);
  for (const { session, key, request } of all) {
    const author = authorOf({ request });
    if (author === undefined) continue;
    const { length: calls } = admittedOf.get(author) ?? [];
    const { length: count } = filed.get(author) ?? [];
    const expected = key === undefined ? calls : Math.min(1, calls);
    const told = `${calls} calls to file ${author} were let in ${key ?? 'without a key'}`;
    must(count === expected, session, `${told}; it is filed ${count} times`);
    if (key !== undefined)
      must(keys.has(key) === (count === 1), session, `${key} is forgotten, or a claim only`);
  }
  const authorOfNumber = new Map(filings.map(({ filingNo, author }) => [filingNo, author]));
  for (const { session, answer, request } of admitted) {
    const author = authorOf({ request });
    if (author === undefined || answer?.status !== 200) continue;
    const { filingNo } = answer.json;
    const found = authorOfNumber.get(filingNo);
    must(found === author, session, `a client was told ${filingNo} for ${author}; it is of ${found}`);
  }
}

/** Who made what a call files; undefined if it files nothing. */
function authorOf({ request: { message } }: Pick<Attempt, 'request'>): string | undefined {
  return isMessage(message, CreateFilingRequestSchema) ? message.author : undefined;
}
