import { and, eq, sql } from 'drizzle-orm';
import type { Actor } from '../../domain/audit-entry.ts';
import {
  callerNotFound,
  changeAgreement,
  type KeyStatus,
  type PlatformLimits,
  type PlatformStatus,
  rejectPlatformName,
  rejectRevoked,
  rejectTakenName,
  rejectUnknownPlatform,
  rotate,
} from '../../domain/caller.ts';
import type {
  CallerCommands,
  NewKey,
  NewPlatform,
  NewSeal,
  NewToken,
  Platform,
  StoredKey,
  StoredToken,
} from '../caller-commands.ts';
import type { Page, PageQuery } from '../paging.ts';
import { createCallerRows, isPlatform, platformColumns, writeScopes } from './callers.ts';
import { countFilings } from './filing-chains.ts';
import { type Handlers, reads, writes } from './handlers.ts';
import { replaceLogSeal } from './log-handlers.ts';
import { oldestFirst, pageOf } from './paging.ts';
import type { Parts } from './parts.ts';
import { countCalls } from './quotas.ts';
import { apiKey, caller, serviceToken, usage } from './schema.ts';
import { replaceWebhookSeal } from './webhooks.ts';

type CallerRows = ReturnType<typeof createCallerRows>;

/** Handlers of platforms and their keys, internal callers and their tokens. */
export function createCallerHandlers(parts: Parts): Handlers<keyof CallerCommands> {
  const { database } = parts;
  const rows = createCallerRows(database);
  const { addPlatform, addToken } = createAdditions(parts, rows);
  return {
    HasCallers: reads(() => database.select({ id: caller.id }).from(caller).limit(1).get() !== undefined),
    AddPlatform: writes(({ by, platform, key }) => addPlatform(by, platform, key)),
    AddFirstCallers: writes(({ by, platform, key, service, token }) => {
      addPlatform(by, platform, key);
      addToken(by, service, token);
      return undefined;
    }),
    AddToken: writes(({ by, name, token }) => addToken(by, name, token)),
    FindCaller: reads(({ name }) => {
      const found = rows.find(name);
      if (found === undefined) throw callerNotFound();
      return { callerId: found.id, caller: found.name };
    }),
    CountCalls: reads(countCalls(database)),
    CountFilings: reads(countFilings(database)),
    ...createPlatformHandlers(parts, rows),
    ...createKeyHandlers(parts, rows),
    ...createTokenHandlers(parts, rows),
  };
}

/** Adds callers with a key or a token. */
function createAdditions(
  { database, recordAudit }: Parts,
  { find, findPlatform, insertKey, requireToken }: CallerRows,
) {
  function addPlatform(
    by: Actor,
    { name, tier, monthlyQuota, filingCap }: NewPlatform,
    key: NewKey,
  ): StoredKey {
    rejectTakenName(find(name));
    const { id } = database
      .insert(caller)
      .values({ name, tier, monthlyQuota: monthlyQuota ?? null, filingCap: filingCap ?? null })
      .returning({ id: caller.id })
      .get();
    const added = insertKey(id, key, 'ACTIVE');
    recordAudit(by, 'key create', added.keyId, { after: auditedKey(added) });
    return added;
  }

  function addToken(by: Actor, name: string, { sha256, platform, scopes, ...token }: NewToken): StoredToken {
    const known = find(name);
    rejectPlatformName(known);
    const actsFor = platform === undefined ? undefined : findPlatform(platform);
    if (platform !== undefined) rejectUnknownPlatform(actsFor);
    const callerId =
      known?.id ?? database.insert(caller).values({ name }).returning({ id: caller.id }).get().id;
    database
      .insert(serviceToken)
      .values({
        ...{ ...token, callerId, sha256: Buffer.from(sha256) },
        scopes: writeScopes(scopes),
        platformId: actsFor?.callerId ?? null,
      })
      .run();
    const added = requireToken(token.tokenId);
    recordAudit(by, 'token create', added.tokenId, { after: auditedToken(added) });
    return added;
  }

  return { addPlatform, addToken };
}

function createPlatformHandlers(
  { database, recordAudit }: Parts,
  { findPlatform, platforms, requirePlatform }: CallerRows,
): Handlers<'FindPlatform' | 'ListPlatforms' | 'SetPlatformStatus' | 'ChangeAgreement' | 'ListUsage'> {
  function changePlatform(
    by: Actor,
    action: string,
    platform: Platform,
    change: Partial<PlatformLimits & Pick<Platform, 'status'>>,
  ): Platform {
    database.update(caller).set(change).where(eq(caller.id, platform.callerId)).run();
    const changed = requirePlatform(platform.caller);
    const values = { before: auditedPlatform(platform), after: auditedPlatform(changed) };
    recordAudit(by, action, platform.caller, values);
    return changed;
  }

  return {
    FindPlatform: reads(({ name }) => findPlatform(name)),
    ListPlatforms: reads(({ page }) =>
      pageOfPlatforms(oldestFirst(platforms(), caller.id, page, isPlatform), page),
    ),
    SetPlatformStatus: writes(({ by, name, status }) => {
      const platform = requirePlatform(name);
      if (platform.status === status) return platform;
      return changePlatform(by, platformActions[status], platform, { status });
    }),
    ChangeAgreement: writes(({ by, name, change }) => {
      const platform = requirePlatform(name);
      const limits = changeAgreement(platform, change);
      const names = ['tier', 'monthlyQuota', 'filingCap'] as const;
      if (names.every((name) => limits[name] === platform[name])) return platform;
      return changePlatform(by, 'platform set', platform, limits);
    }),
    ListUsage: reads(({ month, page }) => {
      const usages = database
        .select({ ...platformColumns, calls: sql<number>`coalesce(${usage.calls}, 0)` })
        .from(caller)
        .leftJoin(usage, and(eq(usage.callerId, caller.id), eq(usage.month, month)))
        .$dynamic();
      return pageOfPlatforms(oldestFirst(usages, caller.id, page, isPlatform), page);
    }),
  };
}

function createKeyHandlers(
  { database, recordAudit, outbox }: Parts,
  { keys, requireKey, insertKey }: CallerRows,
): Handlers<'ListKeys' | 'RotateKey' | 'SetKeyStatus' | 'FindKey' | 'ReplaceSeals'> {
  /** Returns whether the ciphertext was still `from`, and is replaced. */
  function replaceSeal({ keyId, from, to }: NewSeal): boolean {
    const isAsGiven = and(eq(apiKey.keyId, keyId), eq(apiKey.sealedSecret, Buffer.from(from)));
    const { changes } = database
      .update(apiKey)
      .set({ sealedSecret: Buffer.from(to) })
      .where(isAsGiven)
      .run();
    const seal = { keyId, from, to };
    return changes > 0 || replaceLogSeal(database, seal) || replaceWebhookSeal(database, seal);
  }

  return {
    ListKeys: reads(({ page }) => pageOf(oldestFirst(keys(), apiKey.id, page), page, same)),
    RotateKey: writes(({ by, keyId: named, key, endsAtS }) => {
      const old = requireKey(named);
      const { keyId } = old;
      const { status, oldEndsAtS } = rotate(old, key.createdAtS, endsAtS);
      database.update(apiKey).set({ expiresAtS: oldEndsAtS }).where(eq(apiKey.id, old.id)).run();
      const added = insertKey(old.callerId, key, status);
      const after = { ...auditedKey(requireKey(keyId)), rotatedTo: added.keyId };
      recordAudit(by, 'key rotate', keyId, { before: auditedKey(old), after });
      outbox.add({ type: 'key.rotated', callerId: old.callerId, atMs: by.atS * 1_000, keyId });
      return added;
    }),
    SetKeyStatus: writes(({ by, keyId: named, status }) => {
      const key = requireKey(named);
      const { keyId } = key;
      if (key.status === status) return key;
      rejectRevoked(key.status);
      database.update(apiKey).set({ status }).where(eq(apiKey.id, key.id)).run();
      const changed = requireKey(keyId);
      recordAudit(by, keyActions[status], keyId, { before: auditedKey(key), after: auditedKey(changed) });
      return changed;
    }),
    FindKey: reads(({ keyId }) => requireKey(keyId)),
    ReplaceSeals: writes(({ by, masterKey, seals }) => {
      const keyIds = seals.filter(replaceSeal).map(({ keyId }) => keyId);
      if (keyIds.length > 0)
        recordAudit(by, 'secrets re-encrypt', `master key ${masterKey}`, { after: { keyIds } });
      return keyIds.length;
    }),
  };
}

function createTokenHandlers(
  { database, recordAudit }: Parts,
  { tokens, requireToken }: CallerRows,
): Handlers<'ListTokens' | 'RevokeToken'> {
  return {
    ListTokens: reads(({ page }) => pageOf(oldestFirst(tokens(), serviceToken.id, page), page, same)),
    RevokeToken: writes(({ by, tokenId }) => {
      const token = requireToken(tokenId);
      if (token.revokedAtS !== null) return token;
      database
        .update(serviceToken)
        .set({ revokedAtS: by.atS })
        .where(eq(serviceToken.tokenId, tokenId))
        .run();
      const revoked = requireToken(tokenId);
      recordAudit(by, 'token revoke', tokenId, { before: auditedToken(token), after: auditedToken(revoked) });
      return revoked;
    }),
  };
}

const keyActions = {
  ACTIVE: 'key resume',
  SUSPENDED: 'key suspend',
  REVOKED: 'key revoke',
} as const satisfies Record<KeyStatus, string>;

const platformActions = {
  ACTIVE: 'platform resume',
  SUSPENDED: 'platform suspend',
} as const satisfies Record<PlatformStatus, string>;

/** A key as the audit log shows it: without its secret. */
const auditedKey = ({ caller, tier, monthlyQuota, filingCap, status, expiresAtS }: StoredKey) => ({
  platform: caller,
  tier,
  monthlyQuota: monthlyQuota ?? 'unlimited',
  filingCap: filingCap ?? 'none',
  status,
  expiresAtS,
});

const auditedPlatform = ({ tier, monthlyQuota, filingCap, status }: Platform) => ({
  tier,
  monthlyQuota: monthlyQuota ?? 'unlimited',
  filingCap: filingCap ?? 'none',
  status,
});

/** A token as the audit log shows it: without its hash. */
const auditedToken = ({ caller, scopes, platform, expiresAtS, revokedAtS }: StoredToken) => ({
  name: caller,
  scopes,
  platform: platform?.caller ?? null,
  expiresAtS,
  revokedAtS,
});

const same = <T>(row: T): T => row;

function pageOfPlatforms<T extends Platform>(rows: readonly T[], page: PageQuery): Page<T> {
  const byId = rows.map((platform) => ({ id: platform.callerId, platform }));
  return pageOf(byId, page, ({ platform }) => platform);
}
