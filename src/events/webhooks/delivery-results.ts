import type { Clock } from '../../domain/clock.ts';
import type { Execute } from '../../store/store.ts';
import type { DeliveryResult, RecordedAttempts } from '../../store/webhook-commands.ts';
import type { SendingLimits } from './limits.ts';
import type { StoreBackoff } from './throttle.ts';

interface DeliveryResultsDependencies {
  readonly execute: Execute;
  readonly clock: Pick<Clock, 'after'>;
  readonly store: StoreBackoff;
  readonly limits: Pick<SendingLimits, 'batchMs' | 'batchMax'>;
  readonly onRecorded: (results: readonly DeliveryResult[], led: RecordedAttempts) => void;
}

/** Records the results of attempts, many in one transaction. While the store fails, results wait in memory. */
export function createDeliveryResults(dependencies: DeliveryResultsDependencies) {
  const { execute, clock, store, limits, onRecorded } = dependencies;
  const waiting: DeliveryResult[] = [];
  let recording: Promise<unknown> | undefined;
  let isStopped = false;
  /** Cancels the next recording; undefined if none is planned. */
  let cancel: (() => void) | undefined;

  function plan(): void {
    if (isStopped || recording !== undefined || waiting.length === 0) return;
    const waitMs = store.waitMs();
    if (waiting.length >= limits.batchMax && waitMs === 0) start();
    else cancel ??= clock.after(Math.max(limits.batchMs, waitMs), start);
  }

  function start(): void {
    cancel?.();
    cancel = undefined;
    recording = record().finally(() => {
      recording = undefined;
      plan();
    });
  }

  /** Resolves with whether the results were recorded. */
  async function record(): Promise<boolean> {
    const results = waiting.slice(0, limits.batchMax);
    try {
      const led = await execute({ kind: 'RecordAttempts', outcomes: results });
      waiting.splice(0, results.length);
      store.succeeded();
      onRecorded(results, led);
      return true;
    } catch (error) {
      store.failed(error);
      return false;
    }
  }

  return {
    add: (result: DeliveryResult): void => {
      waiting.push(result);
      plan();
    },
    /** How many are not recorded. */
    count: () => waiting.length,
    /** Records all that are left, unless the store fails. */
    stop: async (): Promise<void> => {
      isStopped = true;
      cancel?.();
      await recording;
      while (waiting.length > 0 && (await record()));
    },
  };
}
