import type { Actor } from '../domain/audit-entry.ts';
import type { Clock } from '../domain/clock.ts';
import { ApiError, unavailable } from '../domain/reason.ts';
import { noticeDetail } from '../domain/registration.ts';
import type { NoticeResult, Registration } from '../store/registration-commands.ts';
import type { Execute } from '../store/store.ts';
import { type Mailer, sendMaxS } from './mailer.ts';
import { noticeTo } from './notice.ts';

/** What a run of notices works with. */
export interface NoticeParts {
  readonly execute: Execute;
  readonly mailer: Mailer;
  readonly clock: Pick<Clock, 'nowMs'>;
  /** The address of the service. */
  readonly publicUrl: string;
  /** Returns a globally unique id. */
  readonly newAttempt: () => string;
  /** Whether other processes may send notices of the same store. */
  readonly isShared: boolean;
}

/** The end of an attempt to send a notice, and how many registrations are still due. */
export interface NoticeProgress {
  readonly registration: Pick<Registration, 'registrationId' | 'id'>;
  readonly result: Exclude<NoticeResult, 'NOT_SENT'>;
  readonly detail: string;
  readonly due: number;
}

/** After so many addresses in a row that the mail server rejects for good, a run ends: it may be the sender that is rejected. */
const bouncesInRowMax = 10;

/** `Retry-After` while notices are sent, in seconds. */
const retryAfterS = 60;

/**
 * Returns the function that sends the notices that are due, one after the other in the order of arrival, and yields the end of each
 * attempt. It ends when none is due, or after the attempt under way once the signal is aborted. Each step is stored before the next
 * one: an attempt is claimed before its mail is sent, and has its result before it is yielded. A process can die anywhere: a claim
 * without a result becomes UNKNOWN, which no later run sends to. Throws RATE_LIMITED if notices are sent already, and UNAVAILABLE if the
 * mail server cannot be used, or rejects `bouncesInRowMax` addresses in a row.
 */
export function createNotices({ execute, mailer, clock, publicUrl, newAttempt, isShared }: NoticeParts) {
  let isRunning = false;
  const nowS = () => Math.floor(clock.nowMs() / 1_000);
  // No attempt of this process is under way when it claims the next one.
  const claimLifeS = isShared ? sendMaxS : 0;

  const claim = (by: Actor | undefined, attempt: string) => {
    const atS = nowS();
    return execute({ kind: 'ClaimNotice', by, attempt, nowS: atS, deadBeforeS: atS - claimLifeS });
  };

  /** Opens a session before a notice is claimed: a process that dies while it connects leaves nothing unknown. */
  async function openSession(): Promise<void> {
    const { items } = await execute({
      ...{ kind: 'ListRegistrations', notice: 'DUE', page: { from: undefined, size: 1 } },
    });
    if (items.length === 0) return;
    await mailer.open().catch((error: Error) => {
      throw unavailable(`Notices are not sent: ${error.message}. Solve that, and send them again.`, error);
    });
  }

  async function send(registration: Registration, attempt: string): Promise<NoticeProgress> {
    const { registrationId } = registration;
    const { result, detail: said } = await mailer.send(noticeTo(registration, publicUrl));
    const detail = noticeDetail(said);
    const recorded = { registrationId, attempt, result, detail, nowS: nowS() };
    const due = await execute({ kind: 'RecordNotice', ...recorded });
    if (result !== 'NOT_SENT') return { registration, result, detail, due };
    const advice = 'Solve that, or mark it as bounced to skip it, and send the notices again';
    throw unavailable(`The mail server did not accept the mail to ${registrationId}: ${detail}. ${advice}.`);
  }

  async function* run(by: Actor, signal: AbortSignal): AsyncGenerator<NoticeProgress> {
    let bouncesInRow = 0;
    for (let hasClaimed = false; !signal.aborted; ) {
      await openSession();
      const attempt = newAttempt();
      const next = await claim(hasClaimed ? undefined : by, attempt);
      if (next.next === 'BUSY') throw isSending();
      if (next.next === 'SEND') {
        hasClaimed = true;
        const progress = await send(next.registration, attempt);
        bouncesInRow = progress.result === 'BOUNCED' ? bouncesInRow + 1 : 0;
        yield progress;
        if (bouncesInRow === bouncesInRowMax && progress.due > 0) throw rejectsAll(progress.detail);
      } else if (next.next === 'UNKNOWN') {
        const { registration, due } = next;
        yield { registration, result: 'UNKNOWN', detail: registration.noticeDetail ?? '', due };
      } else return;
    }
  }

  return async function* (by: Actor, signal: AbortSignal): AsyncGenerator<NoticeProgress> {
    if (isRunning) throw isSending();
    isRunning = true;
    try {
      yield* run(by, signal);
    } finally {
      mailer.close();
      isRunning = false;
    }
  };
}

function rejectsAll(detail: string): ApiError {
  const what = `The mail server has rejected ${bouncesInRowMax} addresses in a row, the last one with: ${detail}.`;
  return unavailable(`${what} If it rejects the sender, solve that; then send the notices again.`);
}

function isSending(): ApiError {
  return new ApiError(
    'RATE_LIMITED',
    `Notices are being sent, or were until less than ${sendMaxS / 60} minutes ago: try again later.`,
    { retryAfterS },
  );
}
