import { and, eq, getTableColumns, isNotNull, or, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/sqlite-core';
import { type KeyStatus, platformNotFound, type Tier } from '../../domain/caller.ts';
import { type Scope, scopesIn } from '../../domain/token.ts';
import { fieldError } from '../../domain/violation.ts';
import type { NewKey, NewPlatform, Platform, StoredKey, StoredToken } from '../caller-commands.ts';
import { apiKey, caller, serviceToken } from '../engine/schema.ts';
import type { Database } from '../engine/statement.ts';

/** The columns of a StoredKey, from api_key joined with its caller. */
export const keyColumns = {
  ...getTableColumns(apiKey),
  caller: caller.name,
  // Only platforms have keys, and every platform has a tier.
  tier: sql<Tier>`${caller.tier}`,
  monthlyQuota: caller.monthlyQuota,
  filingCap: caller.filingCap,
  platformStatus: caller.status,
};

/** Whether a caller is a platform. */
export const isPlatform = isNotNull(caller.tier);

/** The columns of a Platform, from a caller that has a tier. */
export const platformColumns = {
  callerId: caller.id,
  caller: caller.name,
  tier: keyColumns.tier,
  monthlyQuota: caller.monthlyQuota,
  filingCap: caller.filingCap,
  status: caller.status,
};

/** The platform that a token acts for. */
export const tokenPlatform = alias(caller, 'platform');

/** The columns of a StoredToken, from service_token joined with its caller and, where it has one, its platform. */
export const tokenColumns = {
  id: serviceToken.id,
  tokenId: serviceToken.tokenId,
  scopes: sql<readonly Scope[]>`${serviceToken.scopes}`.mapWith(readScopes),
  createdAtS: serviceToken.createdAtS,
  expiresAtS: serviceToken.expiresAtS,
  revokedAtS: serviceToken.revokedAtS,
  callerId: serviceToken.callerId,
  caller: caller.name,
  platform: {
    callerId: tokenPlatform.id,
    caller: tokenPlatform.name,
    status: tokenPlatform.status,
    filingCap: tokenPlatform.filingCap,
  },
};

/** The rows of callers, keys and tokens. They change rarely, so no statement is prepared. */
export function createCallerRows(database: Database) {
  const keys = () =>
    database.select(keyColumns).from(apiKey).innerJoin(caller, eq(caller.id, apiKey.callerId)).$dynamic();
  const tokens = () =>
    database
      .select(tokenColumns)
      .from(serviceToken)
      .innerJoin(caller, eq(caller.id, serviceToken.callerId))
      .leftJoin(tokenPlatform, eq(tokenPlatform.id, serviceToken.platformId))
      .$dynamic();
  const platforms = () => database.select(platformColumns).from(caller).$dynamic();
  const findPlatform = (name: string) =>
    platforms()
      .where(and(isPlatform, eq(caller.name, name)))
      .get();

  /** Finds a key by its id or the API key itself. Throws NOT_FOUND. */
  async function requireKey(name: string): Promise<StoredKey> {
    const key = await keys()
      .where(or(eq(apiKey.keyId, name), eq(apiKey.apiKey, name)))
      .limit(1)
      .get();
    if (key === undefined) throw fieldError('NOT_FOUND', 'keyId', 'names no key.');
    return key;
  }

  const find = (name: string) => database.select().from(caller).where(eq(caller.name, name)).get();

  return {
    find,
    /** Registers a platform without a key. Returns its id. Throws VALIDATION_FAILED if the name is taken. */
    insertPlatform: async ({ name, tier, monthlyQuota, filingCap }: NewPlatform): Promise<number> => {
      if ((await find(name)) !== undefined) {
        const rule = 'is taken; rotate a key of that caller to issue another';
        throw fieldError('VALIDATION_FAILED', 'name', rule);
      }
      const { id } = await database
        .insert(caller)
        .values({ name, tier, monthlyQuota: monthlyQuota ?? null, filingCap: filingCap ?? null })
        .returning({ id: caller.id })
        .get();
      return id;
    },
    keys,
    requireKey,
    insertKey: async (callerId: number, key: NewKey, status: KeyStatus): Promise<StoredKey> => {
      const sealedSecret = Buffer.from(key.sealedSecret);
      await database
        .insert(apiKey)
        .values({ ...key, sealedSecret, callerId, status })
        .run();
      return requireKey(key.keyId);
    },
    platforms,
    findPlatform,
    /** Throws NOT_FOUND. */
    requirePlatform: async (name: string): Promise<Platform> => {
      const platform = await findPlatform(name);
      if (platform === undefined) throw platformNotFound();
      return platform;
    },
    tokens,
    /** Throws NOT_FOUND. */
    requireToken: async (tokenId: string): Promise<StoredToken> => {
      const token = await tokens().where(eq(serviceToken.tokenId, tokenId)).get();
      if (token === undefined) throw fieldError('NOT_FOUND', 'tokenId', 'names no token.');
      return token;
    },
  };
}

/** The scopes in order, each followed by a space. */
export function writeScopes(scopes: readonly Scope[]): string {
  return scopesIn(scopes)
    .map((scope) => `${scope} `)
    .join('');
}

function readScopes(words: string): readonly Scope[] {
  return scopesIn(words.split(' '));
}
