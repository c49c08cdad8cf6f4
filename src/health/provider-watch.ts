import type { Clock } from '../domain/clock.ts';
import type { Logger } from '../lib/log.ts';
import { every, sleep, withTimeout } from '../lib/timing.ts';
import type { Access, PaymentProvider } from '../payments/provider.ts';

/** Period and timeout of the credential check, in milliseconds. */
export const accessLimits = {
  askEveryMs: 30_000,
  /** Random deviation from the period, so that instances do not check at the same moment. */
  spreadMs: 5_000,
  answerMs: 8_000,
} as const;

const noResponse = new Error(`no response within ${accessLimits.answerMs / 1_000} seconds`);

/** Asks a provider once whether it accepts the credentials. UNREACHABLE if it rejects, or does not respond within `answerMs`. */
export function askAccess(
  provider: Pick<PaymentProvider, 'checkAccess'>,
  clock: Pick<Clock, 'after'>,
  stopped?: AbortSignal,
): Promise<Access> {
  const limit = { ms: accessLimits.answerMs, reason: noResponse, ...(stopped && { stopped }) };
  return withTimeout(clock, limit, (signal) => provider.checkAccess(signal)).catch((error: Error) => {
    return { kind: 'UNREACHABLE', why: error.message };
  });
}

/** The result of the credential checks. */
export interface ProviderState {
  /** The last response of the provider; undefined before the first one. */
  readonly credentials: 'ACCEPTED' | 'REJECTED' | undefined;
  /** Whether the provider responded to the last check; undefined before the first one. */
  readonly isReached: boolean | undefined;
}

/** What the watch needs; `random` returns 0 to 1. */
export interface ProviderWatchDependencies {
  readonly provider: Pick<PaymentProvider, 'checkAccess'>;
  readonly name: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
}

/**
 * Checks whether the provider accepts the credentials of this deployment: at once, then about every half minute. Logs each change
 * of the state.
 */
export function watchProvider({ provider, name, clock, random, log }: ProviderWatchDependencies) {
  const stopped = new AbortController();
  let state: ProviderState = { credentials: undefined, isReached: undefined };
  let rejectedBecause = '';
  const answered = Promise.withResolvers<void>();
  const listeners: (() => void)[] = [];

  function take(access: Access): void {
    const before = state;
    const isReached = access.kind !== 'UNREACHABLE';
    state = { credentials: isReached ? access.kind : before.credentials, isReached };
    if (access.kind === 'REJECTED') rejectedBecause = access.why;
    answered.resolve();
    const isSame = before.isReached === isReached && before.credentials === state.credentials;
    if (!isSame) for (const listener of listeners) listener();
    // A first check that succeeds is not logged.
    const isExpected = before.isReached === undefined && access.kind === 'ACCEPTED';
    if (!isSame && !isExpected) report(access);
  }

  function report(access: Access): void {
    if (access.kind === 'REJECTED')
      log.error(
        { provider: name, why: access.why },
        'the provider rejects the credentials: orders wait, and the server is not ready until the provider accepts them or ' +
          'the server is restarted with others',
      );
    else if (access.kind === 'UNREACHABLE')
      log.warn({ provider: name, why: access.why }, 'the provider does not respond: orders wait');
    else log.info({ provider: name }, 'the provider accepts the credentials');
  }

  async function check(): Promise<void> {
    const access = await askAccess(provider, clock, stopped.signal);
    if (!stopped.signal.aborted) take(access);
  }

  const periodMs = () => accessLimits.askEveryMs + (2 * random() - 1) * accessLimits.spreadMs;
  const loop = every(clock, periodMs, check);
  void loop.start();
  return {
    state: () => state,
    /**
     * Returns why the server is not ready, in words for the operator: the provider rejected the credentials, or the first check
     * has not ended. A provider that does not respond is no fault: filing works, and orders wait.
     */
    findFault: () => {
      if (state.isReached === undefined) return `${name} has not yet responded to the first credential check`;
      return state.credentials === 'REJECTED'
        ? `${name} rejects the credentials: ${rejectedBecause}`
        : undefined;
    },
    /** Resolves when the first check has ended, after `ms` milliseconds at the latest. */
    answeredWithin: async (ms: number) => {
      const end = new AbortController();
      await Promise.race([answered.promise, sleep(clock, ms, end.signal)]);
      end.abort();
    },
    /** Calls back when the state has changed. */
    onChange: (listener: () => void) => {
      listeners.push(listener);
    },
    stop: () => {
      stopped.abort(new Error('The server stops.'));
      void loop.stop();
    },
  };
}
