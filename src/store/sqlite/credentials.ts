import { eq, isNull } from 'drizzle-orm';
import type { StoredKey, StoredToken } from '../caller-commands.ts';
import { keyColumns, tokenColumns, tokenPlatform } from './callers.ts';
import { apiKey, caller, serviceToken } from './schema.ts';
import { type Database, prepareMapped } from './statement.ts';

/** All keys, and all tokens that are not revoked. They take some megabytes at most. */
export interface Credentials {
  readonly keys: readonly StoredKey[];
  readonly tokens: readonly (StoredToken & { readonly sha256: Uint8Array })[];
}

/** Detects changes of a database's credentials. */
export function watchCredentials(database: Database) {
  const keys = prepareMapped(
    database.select(keyColumns).from(apiKey).innerJoin(caller, eq(caller.id, apiKey.callerId)),
  );
  const tokens = prepareMapped(
    database
      .select({ ...tokenColumns, sha256: serviceToken.sha256 })
      .from(serviceToken)
      .innerJoin(caller, eq(caller.id, serviceToken.callerId))
      .leftJoin(tokenPlatform, eq(tokenPlatform.id, serviceToken.platformId))
      .where(isNull(serviceToken.revokedAtS)),
  );
  let isTouched = true;
  return {
    /** Returns the credentials if they may have changed since the last call. */
    changed: (): Credentials | undefined => {
      if (!isTouched) return undefined;
      const credentials = { keys: keys.all(), tokens: tokens.all() };
      // Set only now, so that a failed read is repeated.
      isTouched = false;
      return credentials;
    },
    /** They may have changed. */
    touch: (): void => {
      isTouched = true;
    },
  };
}
