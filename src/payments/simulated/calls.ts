/** One call under way. It is settled once; what comes later has no effect. */
export interface Call<T> {
  answer(value: T): void;
  fail(error: unknown): void;
}

/** The calls of one connection. */
export interface Calls {
  /**
   * Makes a call, which fails when its signal is aborted or `carry` throws. `carry` may return what calls off
   * whatever is under way for it alone.
   */
  make<T>(signal: AbortSignal, carry: (call: Call<T>) => (() => void) | undefined): Promise<T>;
  /** Fails all calls under way, and all to come. */
  close(): void;
  /** Lets go of all calls under way, and of all to come: they never settle. */
  cut(): void;
}

/** Starts with no call. */
export function createCalls(): Calls {
  const open = new Set<Call<never> & { end(): void }>();
  let state: 'OPEN' | 'CLOSED' | 'CUT' = 'OPEN';
  const closed = () => new Error('The connection to the simulated provider is closed.');

  function make<T>(signal: AbortSignal, carry: (call: Call<T>) => (() => void) | undefined): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    let cancel: (() => void) | undefined;
    const abort = () => call.fail(signal.reason);
    const call = {
      end: () => {
        open.delete(call);
        signal.removeEventListener('abort', abort);
        cancel?.();
      },
      answer: (value: T) => {
        call.end();
        resolve(value);
      },
      fail: (error: unknown) => {
        call.end();
        reject(error);
      },
    };
    if (state === 'CUT') return promise;
    if (state === 'CLOSED' || signal.aborted) {
      reject(signal.aborted ? signal.reason : closed());
      return promise;
    }
    open.add(call);
    signal.addEventListener('abort', abort);
    try {
      cancel = carry(call);
    } catch (error) {
      call.fail(error);
    }
    return promise;
  }

  return {
    make,
    close: () => {
      state = 'CLOSED';
      for (const call of open) call.fail(closed());
    },
    cut: () => {
      state = 'CUT';
      for (const call of open) call.end();
    },
  };
}
