import { eq, isNull } from 'drizzle-orm';
import type { Credentials } from '../engine/known-state.ts';
import { apiKey, caller, serviceToken } from '../engine/schema.ts';
import { keyColumns, tokenColumns, tokenPlatform } from '../handlers/callers.ts';
import type { Queries } from './leaf-rows.ts';
import { forHandlers } from './statement.ts';

/**
 * Reads the credentials of a database, at first and after commands that may have changed them. Each change has an entry of the audit
 * log, so the number of entries is the `version` of the credentials in a session.
 */
export async function watchCredentials(queries: Queries, firstVersion: string) {
  const database = forHandlers(queries);
  let changed: Credentials | undefined;
  let isOf: string;

  async function read(version: string): Promise<void> {
    const keys = await database
      .select(keyColumns)
      .from(apiKey)
      .innerJoin(caller, eq(caller.id, apiKey.callerId))
      .all();
    const tokens = await database
      .select({ ...tokenColumns, sha256: serviceToken.sha256 })
      .from(serviceToken)
      .innerJoin(caller, eq(caller.id, serviceToken.callerId))
      .leftJoin(tokenPlatform, eq(tokenPlatform.id, serviceToken.platformId))
      .where(isNull(serviceToken.revokedAtS))
      .all();
    changed = { keys, tokens };
    isOf = version;
  }

  await read(firstVersion);
  return {
    /** Reads them. They are of this version or a later one. */
    read,
    /** Whether they are of this version. */
    areOf: (version: string): boolean => version === isOf,
    /** Returns them if they were read since the last call. */
    changed: (): Credentials | undefined => {
      const read = changed;
      changed = undefined;
      return read;
    },
  };
}
