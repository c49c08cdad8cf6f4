import type { Logger } from 'pino';
import type { Clock } from '../domain/clock.ts';
import type { Access, PaymentProvider } from '../payments/provider.ts';

/** How often the provider is asked whether it accepts the credentials, and how long for an answer, in milliseconds. */
export const accessLimits = {
  askEveryMs: 30_000,
  /** Added or taken away at random, so that many instances do not ask at the same time. */
  spreadMs: 5_000,
  answerMs: 8_000,
} as const;

/** What is known of the credentials at the provider. */
export interface ProviderState {
  /** What the provider said of them last; undefined until it did. No answer leaves it as it was. */
  readonly credentials: 'ACCEPTED' | 'REJECTED' | undefined;
  /** Whether the last question was answered; undefined until there was one. */
  readonly isReached: boolean | undefined;
}

/** Asks the provider again and again whether it accepts the credentials of this deployment. */
export interface ProviderWatch {
  state(): ProviderState;
  /**
   * Why the service is not ready, in words for the operator: the credentials were rejected, or the first question is not
   * answered or given up yet. Undefined otherwise: without an answer filing and provenance work, and orders wait.
   */
  findFault(): string | undefined;
  /** Resolves when the first question is answered or given up, or so many milliseconds have passed. */
  answeredWithin(ms: number): Promise<void>;
  /** Calls back when what is known has changed. */
  onChange(listener: () => void): void;
  stop(): void;
}

/** What the watch works with; `random` gives 0 to 1. */
export interface ProviderWatchDependencies {
  readonly provider: Pick<PaymentProvider, 'checkAccess'>;
  readonly name: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
}

/** Asks at once, then about every half minute. Logs each change of what comes of it. */
export function watchProvider(dependencies: ProviderWatchDependencies): ProviderWatch {
  const { provider, name, clock, random, log } = dependencies;
  const stopped = new AbortController();
  let cancel = () => {};
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
    // That all is well at the start needs no line.
    const isExpected = before.isReached === undefined && access.kind === 'ACCEPTED';
    if (!isSame && !isExpected) tell(access);
  }

  function tell(access: Access): void {
    if (access.kind === 'REJECTED')
      log.error(
        { provider: name, why: access.why },
        'the provider rejects the credentials: orders wait, and the service is not ready until it accepts them or is ' +
          'restarted with others',
      );
    else if (access.kind === 'UNREACHABLE')
      log.warn({ provider: name, why: access.why }, 'the provider does not answer: orders wait for it');
    else log.info({ provider: name }, 'the provider answers and accepts the credentials');
  }

  async function ask(): Promise<void> {
    const timeout = new AbortController();
    const forget = clock.after(accessLimits.answerMs, () =>
      timeout.abort(new Error(`no answer within ${accessLimits.answerMs / 1_000} seconds`)),
    );
    const access = await provider.checkAccess(AbortSignal.any([stopped.signal, timeout.signal]));
    forget();
    if (stopped.signal.aborted) return;
    take(access);
    const spreadMs = (2 * random() - 1) * accessLimits.spreadMs;
    cancel = clock.after(accessLimits.askEveryMs + spreadMs, () => void ask());
  }

  void ask();
  return {
    state: () => state,
    findFault: () => {
      if (state.isReached === undefined) return `${name} has not said yet whether it accepts the credentials`;
      return state.credentials === 'REJECTED'
        ? `${name} rejects the credentials: ${rejectedBecause}`
        : undefined;
    },
    answeredWithin: async (ms) => {
      const passed = Promise.withResolvers<void>();
      const cancel = clock.after(ms, passed.resolve);
      await Promise.race([answered.promise, passed.promise]);
      cancel();
    },
    onChange: (listener) => {
      listeners.push(listener);
    },
    stop: () => {
      stopped.abort(new Error('The service stops.'));
      cancel();
    },
  };
}
