import { eq, isNull } from 'drizzle-orm';
import type { Credentials } from '../engine/known-state.ts';
import { apiKey, caller, serviceToken } from '../engine/schema.ts';
import { prepareMapped } from '../engine/statement.ts';
import { keyColumns, tokenColumns, tokenPlatform } from '../handlers/callers.ts';
import type { SqliteDatabase } from './statement.ts';

/** Detects changes of a database's credentials. */
export function watchCredentials(database: SqliteDatabase) {
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
