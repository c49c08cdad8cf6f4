import { hkdfSync } from 'node:crypto';
import type { StoredKey, StoredToken } from '../caller-commands.ts';
import type { EventListener, StorageErrors, Store } from '../store.ts';
import { noStorageErrors } from './failure.ts';

/** All keys, and all tokens that are not revoked. They take some megabytes at most. */
export interface Credentials {
  readonly keys: readonly StoredKey[];
  readonly tokens: readonly (StoredToken & { readonly sha256: Uint8Array })[];
}

/** What is new in a core. Undefined, or the same errors, is nothing new. */
export interface News {
  readonly credentials?: Credentials | undefined;
  /** The callers that have events to read since the last news. */
  readonly events?: readonly number[] | undefined;
  readonly storageErrors?: StorageErrors | undefined;
}

/**
 * What a store knows of its core without a request: credentials by API key and token hash, storage errors, and listeners of news.
 */
export function createKnownState() {
  let keys: ReadonlyMap<string, Credentials['keys'][number]> = new Map();
  let tokens: ReadonlyMap<string, Credentials['tokens'][number]> = new Map();
  let errors = noStorageErrors;
  const ofEvents = createListeners<Parameters<EventListener>>();
  const ofErrors = createListeners<[]>();
  return {
    /** Takes what is new, and notifies the listeners. */
    update: ({ credentials, events, storageErrors = errors }: News): void => {
      if (credentials !== undefined) {
        keys = new Map(credentials.keys.map((key) => [key.apiKey, key]));
        tokens = new Map(credentials.tokens.map((token) => [nameOf(token.sha256), token]));
      }
      if (events !== undefined) ofEvents.notify(events);
      if (storageErrors === errors) return;
      errors = storageErrors;
      ofErrors.notify();
    },
    /** The methods of the store that read it. */
    methods: {
      findKey: (apiKey) => keys.get(apiKey),
      findToken: (sha256) => tokens.get(nameOf(sha256)),
      onEvents: ofEvents.add,
      onStorageError: ofErrors.add,
      storageErrors: () => errors,
    } satisfies Partial<Store>,
  };
}

const nameOf = (sha256: Uint8Array): string => Buffer.from(sha256).toString('latin1');

function createListeners<Args extends readonly unknown[]>() {
  const listeners = new Set<(...args: Args) => void>();
  return {
    add: (listener: (...args: Args) => void) => {
      // A listener that is added twice is also removed twice.
      const own = (...args: Args) => listener(...args);
      listeners.add(own);
      return () => listeners.delete(own);
    },
    notify: (...args: Args) => {
      for (const listener of listeners) listener(...args);
    },
  };
}

const derivedKeyBytes = 32;

/** The key for a purpose: HKDF-SHA256 of the deployment's secret, 32 bytes. */
export function derivedKey(secret: Uint8Array, purpose: string): Uint8Array {
  return Buffer.from(hkdfSync('sha256', secret, '', `artseal ${purpose}`, derivedKeyBytes));
}
