import type { Store } from '../store.ts';
import type { Credentials } from './credentials.ts';

/** Credentials in memory, by API key and token hash. */
export interface CredentialIndex extends Pick<Store, 'findKey' | 'findToken'> {
  /** Replaces all credentials. */
  replace(credentials: Credentials): void;
}

export function createCredentialIndex(): CredentialIndex {
  let keys: ReadonlyMap<string, Credentials['keys'][number]> = new Map();
  let tokens: ReadonlyMap<string, Credentials['tokens'][number]> = new Map();
  return {
    replace: (credentials) => {
      keys = new Map(credentials.keys.map((key) => [key.apiKey, key]));
      tokens = new Map(credentials.tokens.map((token) => [nameOf(token.sha256), token]));
    },
    findKey: (apiKey) => keys.get(apiKey),
    findToken: (sha256) => tokens.get(nameOf(sha256)),
  };
}

const nameOf = (sha256: Uint8Array): string => Buffer.from(sha256).toString('latin1');
