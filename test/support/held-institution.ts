import type { Institution, Verdict } from '../../src/payment/institution.ts';

/** What an institution is told. */
export type Instruction = keyof Institution;

/** An institution that confirms at once, but keeps the verdicts on one kind of instruction until it is told them. */
export interface HeldInstitution extends Institution {
  /** Resolves when so many instructions have come. */
  instructed(count: number): Promise<void>;
  /** Gives the verdict on all instructions that wait. */
  answer(verdict: Verdict): void;
  /** Fails all instructions that wait: their verdict is not known. */
  fail(error: Error): void;
}

/** Makes an institution that keeps the verdicts on `held`. */
export function createHeldInstitution(held: Instruction): HeldInstitution {
  let waiting: PromiseWithResolvers<Verdict>[] = [];
  let instructions = 0;
  let watchers: { readonly count: number; readonly resolve: () => void }[] = [];

  function instruct(kind: Instruction): Promise<Verdict> {
    if (kind !== held) return Promise.resolve('CONFIRMED');
    const verdict = Promise.withResolvers<Verdict>();
    waiting.push(verdict);
    instructions += 1;
    for (const { count, resolve } of watchers) if (instructions >= count) resolve();
    return verdict.promise;
  }
  function takeWaiting(): PromiseWithResolvers<Verdict>[] {
    const taken = waiting;
    waiting = [];
    return taken;
  }

  return {
    freeze: () => instruct('freeze'),
    release: () => instruct('release'),
    instructed: (count) => {
      if (instructions >= count) return Promise.resolve();
      const { promise, resolve } = Promise.withResolvers<void>();
      watchers = [...watchers, { count, resolve }];
      return promise;
    },
    answer: (verdict) => {
      for (const { resolve } of takeWaiting()) resolve(verdict);
    },
    fail: (error) => {
      for (const { reject } of takeWaiting()) reject(error);
    },
  };
}
