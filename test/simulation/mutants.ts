import { type Assembly, real } from '../../simulation/assembly.ts';
import type { Executed, Kind, Store, StoreRequest } from '../../src/store/store.ts';

/** A service with one defect, which the simulation must detect. */
export interface Mutant {
  readonly name: string;
  readonly assembly: Partial<Assembly>;
  /** Matches the message of the failure. */
  readonly message: RegExp;
}

/** Executes a request of any kind. */
export type AnyExecute = (request: StoreRequest) => Promise<Executed>;

/** Changes how the store executes requests. */
export const withExecute = (change: (execute: AnyExecute) => AnyExecute): Partial<Assembly> => ({
  assemble: (parts) => real.assemble({ ...parts, store: changed(parts.store, change) }),
});

/** Returns a store that executes requests in another way. */
export function changed(store: Store, change: (execute: AnyExecute) => AnyExecute): Store {
  return { ...store, execute: change(store.execute) as Store['execute'] };
}

/** Whether a request has a command of this kind. */
export const isA = <K extends Kind>(kind: K, { effect }: StoreRequest): boolean => effect?.kind === kind;

/** Returns the failure of the first seed whose run fails, or undefined if none does. */
export async function failureOf(
  seeds: readonly string[],
  run: (seed: string) => Promise<unknown>,
): Promise<Error | undefined> {
  for (const seed of seeds) {
    const failure = await run(seed).then(
      () => undefined,
      (error) => error,
    );
    if (failure !== undefined) return failure;
  }
  return undefined;
}
