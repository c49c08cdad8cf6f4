import type { Clock } from '../../domain/clock.ts';
import type { Execute } from '../../store/store.ts';
import type { DeliveryResult, NotedAttempts } from '../../store/webhook-commands.ts';
import { pauseMs, type SendingLimits } from './limits.ts';

/** Gathers what came of attempts and writes it down, so that many share a transaction. Nothing is lost while the store is away. */
export interface DeliveryResults {
  add(outcome: DeliveryResult): void;
  /** How many are not written down. */
  count(): number;
  /** Writes down what there is, if the store works; nothing is tried again behind it. */
  end(): Promise<void>;
}

/** What they work with. */
export interface DeliveryResultsDependencies {
  readonly execute: Execute;
  readonly clock: Clock;
  readonly limits: SendingLimits;
  /** Is told what was written down, and what it led to. */
  readonly onWritten: (outcomes: readonly DeliveryResult[], led: NotedAttempts) => void;
  /** Is told why nothing could be written down. */
  readonly onFault: (error: unknown) => void;
}

export function createDeliveryResults({
  execute,
  clock,
  limits,
  onWritten,
  onFault,
}: DeliveryResultsDependencies): DeliveryResults {
  const waiting: DeliveryResult[] = [];
  let underWay: Promise<void> | undefined;
  let failures = 0;
  let isEnded = false;
  /** Calls off the next writing; undefined if none is planned. */
  let cancel: (() => void) | undefined;

  function plan(ms: number): void {
    cancel ??= clock.after(ms, begin);
  }

  function begin(): void {
    cancel?.();
    cancel = undefined;
    underWay ??= write().finally(() => {
      underWay = undefined;
      if (waiting.length > 0 && !isEnded) planNext();
    });
  }

  function planNext(): void {
    const { firstStorePauseMs, longestStorePauseMs } = limits;
    if (failures > 0) plan(pauseMs(failures, firstStorePauseMs, longestStorePauseMs));
    else if (waiting.length >= limits.gatherMax) begin();
    else plan(limits.gatherMs);
  }

  async function write(): Promise<void> {
    const outcomes = waiting.slice(0, limits.gatherMax);
    try {
      const led = await execute({ kind: 'RecordAttempts', outcomes });
      waiting.splice(0, outcomes.length);
      failures = 0;
      onWritten(outcomes, led);
    } catch (error) {
      failures += 1;
      onFault(error);
    }
  }

  return {
    add: (outcome) => {
      waiting.push(outcome);
      const isDue = waiting.length === limits.gatherMax && failures === 0;
      if (isDue) begin();
      else if (underWay === undefined) plan(limits.gatherMs);
    },
    count: () => waiting.length,
    end: async () => {
      isEnded = true;
      cancel?.();
      await underWay;
      failures = 0;
      while (waiting.length > 0 && failures === 0) await write();
    },
  };
}
