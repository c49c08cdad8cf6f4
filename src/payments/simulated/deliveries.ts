import type { Script } from './faults.ts';
import type { HoldEvent } from './notifications.ts';
import type { Outbox, WaitingNotification } from './outbox.ts';
import type { Timers } from './timers.ts';

/** How long after a change its notification leaves, in milliseconds. */
export const deliveryDelayMs = 20;
/** How long a notification that others overtake is kept back at most, in milliseconds. */
export const keptBackMaxMs = 2_000;
/** How long the receiver has for an answer, in milliseconds. */
export const receiverTimeoutMs = 10_000;
/** How long to wait after each failure, in milliseconds; a notification that has failed once more is lost. */
export const retryDelaysMs: readonly number[] = [1_000, 5_000, 30_000, 120_000, 600_000];
/** How many deliveries are under way at once; more wait. */
const underWayMax = 16;

/** The way of notifications from the outbox to their receiver. */
export interface Deliveries {
  /** Sends what has come into the outbox since the last time. */
  pickUp(): void;
  /** Gives up what is under way; nothing leaves any more. */
  end(): void;
}

/** What deliveries need. */
export interface DeliveriesOptions {
  readonly outbox: Outbox;
  readonly timers: Timers;
  readonly script: () => Script;
  /** Resolves when the receiver has taken it. */
  readonly send: (notification: HoldEvent, signal: AbortSignal) => Promise<void>;
}

/** A duplicate is a copy, whose failure matters to nobody. */
type Which = 'ORIGINAL' | 'COPY';

const notificationOf = ({ id, holdId }: WaitingNotification): HoldEvent => ({
  eventId: `sim-evt-${id}`,
  holdId,
});

/** Makes deliveries with nothing under way; pickUp begins with all that the outbox has. */
export function createDeliveries({ outbox, timers, script, send }: DeliveriesOptions): Deliveries {
  const underWay = new Set<AbortController>();
  const keptBack = new Set<() => void>();
  let lastId = 0;

  function plan(waiting: WaitingNotification): void {
    const fault = script().notification(notificationOf(waiting), waiting.failures + 1);
    if (fault.kind === 'LOST') outbox.remove(waiting.id);
    else if (fault.kind === 'REORDERED') keepBack(waiting);
    else if (fault.kind === 'LATE') leaveAfter(deliveryDelayMs + fault.ms, waiting);
    else leaveAfter(deliveryDelayMs, waiting);
    if (fault.kind === 'DUPLICATE') leaveAfter(2 * deliveryDelayMs, waiting, 'COPY');
  }

  function keepBack(waiting: WaitingNotification): void {
    const letGo = () => {
      cancel();
      keptBack.delete(letGo);
      leaveAfter(deliveryDelayMs, waiting);
    };
    const cancel = timers.after(keptBackMaxMs, letGo);
    keptBack.add(letGo);
  }

  function leaveAfter(ms: number, waiting: WaitingNotification, which: Which = 'ORIGINAL'): void {
    timers.after(ms, () => {
      if (underWay.size < underWayMax) leave(waiting, which);
      else leaveAfter(deliveryDelayMs, waiting, which);
    });
  }

  function leave(waiting: WaitingNotification, which: Which): void {
    // It resolves in any case.
    void attempt(waiting).then((taken) =>
      timers.now(() => {
        if (taken) outbox.remove(waiting.id);
        else if (which === 'ORIGINAL') retry(waiting);
      }),
    );
    for (const letGo of [...keptBack]) letGo();
  }

  async function attempt(waiting: WaitingNotification): Promise<boolean> {
    const controller = new AbortController();
    underWay.add(controller);
    const gaveUp = Promise.withResolvers<boolean>();
    const cancel = timers.after(receiverTimeoutMs, () => {
      controller.abort(new Error(`The receiver did not answer within ${receiverTimeoutMs} ms.`));
      gaveUp.resolve(false);
    });
    try {
      const sent = send(notificationOf(waiting), controller.signal).then(() => true);
      return await Promise.race([sent, gaveUp.promise]);
    } catch {
      return false;
    } finally {
      cancel();
      underWay.delete(controller);
    }
  }

  function retry(waiting: WaitingNotification): void {
    const delayMs = retryDelaysMs[waiting.failures];
    if (delayMs === undefined) {
      outbox.remove(waiting.id);
      return;
    }
    outbox.countFailure(waiting.id);
    timers.after(delayMs, () => {
      // A copy may have been taken meanwhile.
      if (outbox.has(waiting.id)) plan({ ...waiting, failures: waiting.failures + 1 });
    });
  }

  return {
    pickUp: () => {
      for (const waiting of outbox.after(lastId)) {
        lastId = waiting.id;
        plan(waiting);
      }
    },
    end: () => {
      for (const controller of underWay) controller.abort(new Error('The simulated provider has ended.'));
    },
  };
}
