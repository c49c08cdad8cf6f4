import { and, eq, sql } from 'drizzle-orm';
import type { Actor } from '../../domain/audit-entry.ts';
import {
  callerNotFound,
  changeAgreement,
  type KeyStatus,
  type PlatformLimits,
  type PlatformStatus,
  rejectRevoked,
  rotate,
} from '../../domain/caller.ts';
import { ApiError } from '../../domain/reason.ts';
import { fieldError } from '../../domain/violation.ts';
import { webhookOfUrlSeal } from '../../domain/webhook.ts';
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
import { type Handlers, reads, writes } from '../engine/handlers.ts';
import { oldestFirst, pageOf } from '../engine/paging.ts';
import { apiKey, caller, logKey, serviceToken, usage, webhook } from '../engine/schema.ts';
import { type Database, placeholders, prepare } from '../engine/statement.ts';
import type { Page, PageQuery } from '../paging.ts';
import { createCallerRows, isPlatform, platformColumns, writeScopes } from './callers.ts';
import type { Parts } from './parts.ts';

type CallerRows = ReturnType<typeof createCallerRows>;

/** Handlers of platforms and their keys, internal callers and their tokens. */
export function createCallerHandlers(parts: Parts): Handlers<keyof CallerCommands> {
  const { database, countCalls, filings } = parts;
  const rows = createCallerRows(database);
  const { addPlatform, addToken } = createAdditions(parts, rows);
  const revokeToken = createRevocation(parts, rows);
  return {
    HasCallers: reads(async () => {
      const first = await database.select({ id: caller.id }).from(caller).limit(1).get();
      return first !== undefined;
    }),
    AddPlatform: writes(({ by, platform, key }) => addPlatform(by, platform, key)),
    AddFirstCallers: writes(async ({ by, platform, key, service, token }) => {
      await addPlatform(by, platform, key);
      await addToken(by, service, token);
      return undefined;
    }),
    AddToken: writes(async ({ by, name, token, replacedId }) => {
      if (replacedId !== undefined && (await rows.requireToken(replacedId)).revokedAtS !== null)
        throw new ApiError('PERMISSION_DENIED', 'The token is revoked: it was used already.');
      if (replacedId !== undefined) await revokeToken(by, replacedId);
      return addToken(by, name, token);
    }),
    RevokeToken: writes(({ by, tokenId }) => revokeToken(by, tokenId)),
    FindCaller: reads(async ({ name }) => {
      const found = await rows.find(name);
      if (found === undefined) throw callerNotFound();
      return { callerId: found.id, caller: found.name };
    }),
    CountCalls: reads(countCalls),
    CountFilings: reads((of) => filings.count(of)),
    ...createPlatformHandlers(parts, rows),
    ...createKeyHandlers(parts, rows),
    ListTokens: reads(async ({ page }) =>
      pageOf(await oldestFirst(rows.tokens(), serviceToken.id, page), page, same),
    ),
  };
}

function createAdditions(
  { database, recordAudit }: Parts,
  { find, findPlatform, insertKey, insertPlatform, requireToken }: CallerRows,
) {
  async function addPlatform(by: Actor, platform: NewPlatform, key: NewKey): Promise<StoredKey> {
    const added = await insertKey(await insertPlatform(platform), key, 'ACTIVE');
    await recordAudit(by, 'key create', added.keyId, { after: auditedKey(added) });
    return added;
  }

  async function addToken(
    by: Actor,
    name: string,
    { sha256, platform, scopes, ...token }: NewToken,
  ): Promise<StoredToken> {
    const known = await find(name);
    // Only platforms have a tier.
    if (known && known.tier !== null) throw fieldError('VALIDATION_FAILED', 'name', 'is taken by a platform');
    const actsFor = platform === undefined ? undefined : await findPlatform(platform);
    if (platform !== undefined && actsFor === undefined)
      throw fieldError('VALIDATION_FAILED', 'platform', 'names no platform');
    const { id: callerId } =
      known ?? (await database.insert(caller).values({ name }).returning({ id: caller.id }).get());
    await database
      .insert(serviceToken)
      .values({
        ...{ ...token, callerId, sha256: Buffer.from(sha256) },
        scopes: writeScopes(scopes),
        platformId: actsFor?.callerId ?? null,
      })
      .run();
    const added = await requireToken(token.tokenId);
    await recordAudit(by, 'token create', added.tokenId, { after: auditedToken(added) });
    return added;
  }

  return { addPlatform, addToken };
}

function createPlatformHandlers(
  { database, recordAudit }: Parts,
  { findPlatform, platforms, requirePlatform }: CallerRows,
): Handlers<'FindPlatform' | 'ListPlatforms' | 'SetPlatformStatus' | 'ChangeAgreement' | 'ListUsage'> {
  async function changePlatform(
    by: Actor,
    action: string,
    platform: Platform,
    change: Partial<PlatformLimits & Pick<Platform, 'status'>>,
  ): Promise<Platform> {
    await database.update(caller).set(change).where(eq(caller.id, platform.callerId)).run();
    const changed = await requirePlatform(platform.caller);
    const values = { before: auditedPlatform(platform), after: auditedPlatform(changed) };
    await recordAudit(by, action, platform.caller, values);
    return changed;
  }

  return {
    FindPlatform: reads(({ name }) => findPlatform(name)),
    ListPlatforms: reads(async ({ page }) =>
      pageOfPlatforms(await oldestFirst(platforms(), caller.id, page, isPlatform), page),
    ),
    SetPlatformStatus: writes(async ({ by, name, status }) => {
      const platform = await requirePlatform(name);
      if (platform.status === status) return platform;
      return changePlatform(by, platformActions[status], platform, { status });
    }),
    ChangeAgreement: writes(async ({ by, name, change }) => {
      const platform = await requirePlatform(name);
      const limits = changeAgreement(platform, change);
      const names = ['tier', 'monthlyQuota', 'filingCap'] as const;
      if (names.every((name) => limits[name] === platform[name])) return platform;
      return changePlatform(by, 'platform set', platform, limits);
    }),
    ListUsage: reads(async ({ month, page }) => {
      const usages = database
        .select({ ...platformColumns, calls: sql<number>`coalesce(${usage.calls}, 0)` })
        .from(caller)
        .leftJoin(usage, and(eq(usage.callerId, caller.id), eq(usage.month, month)))
        .$dynamic();
      return pageOfPlatforms(await oldestFirst(usages, caller.id, page, isPlatform), page);
    }),
  };
}

function createKeyHandlers(
  { database, recordAudit, outbox, clock }: Parts,
  { keys, requireKey, insertKey }: CallerRows,
): Handlers<'ListKeys' | 'RotateKey' | 'SetKeyStatus' | 'FindKey' | 'ReplaceSeals'> {
  const replacements = prepareReplacements(database);

  /** Returns whether the ciphertext was still `from`, and is replaced. */
  async function replaceSeal({ keyId, from, to }: NewSeal): Promise<boolean> {
    const values = {
      keyId,
      from: Buffer.from(from),
      to: Buffer.from(to),
      webhookId: webhookOfUrlSeal(keyId) ?? null,
    };
    for (const replacement of replacements) if ((await replacement.run(values)) > 0) return true;
    return false;
  }

  return {
    ListKeys: reads(async ({ platform, page }) => {
      const isOfPlatform = platform === undefined ? undefined : eq(caller.name, platform);
      return pageOf(await oldestFirst(keys(), apiKey.id, page, isOfPlatform), page, same);
    }),
    RotateKey: writes(async ({ by, keyId: named, key, endsAtS }) => {
      const old = await requireKey(named);
      const { keyId } = old;
      const rotated = rotate(old, key.createdAtS, endsAtS);
      await database.update(apiKey).set(rotated.old).where(eq(apiKey.id, old.id)).run();
      const added = await insertKey(old.callerId, key, rotated.status);
      const after = { ...auditedKey(await requireKey(keyId)), rotatedTo: added.keyId };
      await recordAudit(by, 'key rotate', keyId, { before: auditedKey(old), after });
      const atMs = (by.atS + (await clock.aheadS())) * 1_000;
      outbox.add({ type: 'key.rotated', callerId: old.callerId, atMs, keyId });
      return added;
    }),
    SetKeyStatus: writes(async ({ by, keyId: named, status }) => {
      const key = await requireKey(named);
      const { keyId } = key;
      if (key.status === status) return key;
      rejectRevoked(key.status);
      await database.update(apiKey).set({ status }).where(eq(apiKey.id, key.id)).run();
      const changed = await requireKey(keyId);
      await recordAudit(by, keyActions[status], keyId, {
        before: auditedKey(key),
        after: auditedKey(changed),
      });
      return changed;
    }),
    FindKey: reads(({ keyId }) => requireKey(keyId)),
    ReplaceSeals: writes(async ({ by, masterKey, seals }) => {
      const keyIds: string[] = [];
      for (const seal of seals) if (await replaceSeal(seal)) keyIds.push(seal.keyId);
      if (keyIds.length > 0)
        await recordAudit(by, 'secrets re-encrypt', `master key ${masterKey}`, { after: { keyIds } });
      return keyIds.length;
    }),
  };
}

/** Prepares the replacement of a ciphertext: a statement for each column of ciphertexts. */
function prepareReplacements(database: Database) {
  const from = sql.placeholder('from');
  const { to } = placeholders('to');
  const isKey = eq(apiKey.keyId, sql.placeholder('keyId'));
  const isLogKey = eq(logKey.vkey, sql.placeholder('keyId'));
  const isOfWebhook = eq(webhook.webhookId, sql.placeholder('keyId'));
  const isOfUrl = eq(webhook.webhookId, sql.placeholder('webhookId'));
  const statements = prepare(database, {
    key: database
      .update(apiKey)
      .set({ sealedSecret: to })
      .where(and(isKey, eq(apiKey.sealedSecret, from))),
    logKey: database
      .update(logKey)
      .set({ sealedSeed: to })
      .where(and(isLogKey, eq(logKey.sealedSeed, from))),
    secret: database
      .update(webhook)
      .set({ sealedSecret: to })
      .where(and(isOfWebhook, eq(webhook.sealedSecret, from))),
    previousSecret: database
      .update(webhook)
      .set({ previousSecret: to })
      .where(and(isOfWebhook, eq(webhook.previousSecret, from))),
    url: database
      .update(webhook)
      .set({ sealedUrl: to })
      .where(and(isOfUrl, eq(webhook.sealedUrl, from))),
  });
  return Object.values(statements);
}

/** Revokes a token. One that is revoked already stays as it is. Throws NOT_FOUND. */
function createRevocation({ database, recordAudit }: Parts, { requireToken }: CallerRows) {
  return async (by: Actor, tokenId: string): Promise<StoredToken> => {
    const token = await requireToken(tokenId);
    if (token.revokedAtS !== null) return token;
    await database
      .update(serviceToken)
      .set({ revokedAtS: by.atS })
      .where(eq(serviceToken.tokenId, tokenId))
      .run();
    const revoked = await requireToken(tokenId);
    await recordAudit(by, 'token revoke', tokenId, {
      before: auditedToken(token),
      after: auditedToken(revoked),
    });
    return revoked;
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
export const auditedKey = (key: StoredKey) => ({
  platform: key.caller,
  ...auditedPlatform(key),
  expiresAtS: key.expiresAtS,
});

const auditedPlatform = ({
  tier,
  monthlyQuota,
  filingCap,
  status,
}: PlatformLimits & { readonly status: KeyStatus }) => ({
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

function pageOfPlatforms<T extends Platform>(rows: readonly T[], page: PageQuery): Promise<Page<T>> {
  const byId = rows.map((platform) => ({ id: platform.callerId, platform }));
  return pageOf(byId, page, ({ platform }) => platform);
}
