import type { Store, StoreMetrics, StoreRequest } from '../store.ts';
import { createBatcher, type Send } from './batcher.ts';
import { createKnownState, derivedKey, type News } from './known-state.ts';

/** What executes the batches of a store in this thread. */
interface Core {
  readonly secret: Uint8Array;
  executeBatch: Send;
  /** Reads what the next batch needs, while the one before is stored. */
  readAhead?(batch: readonly StoreRequest[]): void;
  changedCredentials(): News['credentials'];
  takeEventNews(): News['events'];
  storageErrors(): NonNullable<News['storageErrors']>;
  metrics(): Omit<StoreMetrics, 'requestsInFlight'>;
}

/** The store over a core in this thread. `end` releases the resources of the core. */
export function createCoreStore(
  core: Core,
  rest: Pick<Store, 'checkedMs' | 'upgrade' | 'findFault' | 'lost' | 'instances'>,
  end: () => void | Promise<void>,
): Store {
  const { update, methods } = createKnownState();
  const report = () =>
    update({
      credentials: core.changedCredentials(),
      events: core.takeEventNews(),
      storageErrors: core.storageErrors(),
    });
  report();
  const { execute, inFlight, close } = createBatcher(
    async (...sent) => {
      const replies = await core.executeBatch(...sent);
      report();
      return replies;
    },
    { read: core.readAhead },
  );
  let closing: Promise<void> | undefined;
  return {
    ...{ execute, ...methods, ...rest },
    keyFor: (purpose) => derivedKey(core.secret, purpose),
    requestsInFlight: inFlight,
    metrics: async () => ({ ...core.metrics(), requestsInFlight: inFlight() }),
    close: () => {
      closing ??= close().then(end);
      return closing;
    },
  };
}
