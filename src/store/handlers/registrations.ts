import { and, eq, gt, inArray, isNull, sql } from 'drizzle-orm';
import type { Actor } from '../../domain/audit-entry.ts';
import { noticeIsSending } from '../../domain/registration.ts';
import { fieldError } from '../../domain/violation.ts';
import { type Handlers, reads, writes } from '../engine/handlers.ts';
import { oldestFirst, pageOf } from '../engine/paging.ts';
import { apiKey, registration } from '../engine/schema.ts';
import type { AccessLink, NewRegistration, RegistrationCommands } from '../registration-commands.ts';
import { auditedKey } from './caller-handlers.ts';
import { createCallerRows } from './callers.ts';
import { createNoticeHandlers } from './notices.ts';
import type { Parts } from './parts.ts';
import { createRegistrationRows, type RegistrationRow, toRegistration } from './registration-rows.ts';

/** The commands of `createAccessHandlers`. */
type AccessKind = 'ApproveRegistration' | 'RenewAccessLink' | 'FindAccessLink' | 'ClaimAccess';

/** Handlers of pre-registrations and the notices to them. */
export function createRegistrationHandlers(
  parts: Parts,
): Handlers<Exclude<keyof RegistrationCommands, AccessKind>> {
  const { database, recordAudit } = parts;
  const table = createRegistrationRows(database);

  /** Stores a new pre-registration, or the texts of one that was removed. */
  async function put(
    given: NewRegistration,
    atS: number,
    byForm: 0 | 1,
    removed: RegistrationRow | undefined,
  ): Promise<RegistrationRow> {
    const { registrationId, emailDigest, ...texts } = given;
    const row = { ...texts, byForm, registeredAtS: atS };
    if (removed !== undefined) return table.change(removed.id, { ...row, removedAtS: null });
    const added = { ...row, id: await table.nextId(), registrationId, emailDigest: Buffer.from(emailDigest) };
    await database.insert(registration).values(added).run();
    return table.require(registrationId);
  }

  /**
   * Stores a row as it is. A form that writes nothing takes less time, which would show that its address is known. SQLite writes no page
   * for an update without a change.
   */
  async function putAgain({ platform: _, ...row }: RegistrationRow): Promise<void> {
    await database.delete(registration).where(eq(registration.id, row.id)).run();
    await database.insert(registration).values(row).run();
  }

  const known = (emailDigest: Uint8Array) =>
    table.first(eq(registration.emailDigest, Buffer.from(emailDigest)));

  return {
    ...createNoticeHandlers(parts, table),
    AddRegistration: writes(async ({ by, registration: given }) => {
      const found = await known(given.emailDigest);
      if (found !== undefined && found.removedAtS === null)
        return { registration: toRegistration(found), isNew: false };
      const row = await put(given, by.atS, 0, found);
      await recordAudit(by, 'access add', row.registrationId, { after: { tier: row.tier } });
      return { registration: toRegistration(row), isNew: true };
    }),
    TakeForm: writes(async ({ atS, max, registration: given }) => {
      // Before the address is looked up: a full form says the same for a known one.
      if ((await table.count(sql`${registration.byForm} = 1`)) >= max) return false;
      const found = await known(given.emailDigest);
      if (found !== undefined && found.removedAtS === null) await putAgain(found);
      else await put(given, atS, 1, found);
      return true;
    }),
    ListRegistrations: reads(async ({ notice, page }) => {
      const isMeant =
        notice === 'DUE' ? isNull(registration.notice) : notice && eq(registration.notice, notice);
      const condition = and(isMeant, isNull(registration.removedAtS));
      return pageOf(await oldestFirst(table.rows(), registration.id, page, condition), page, toRegistration);
    }),
    SetAppointment: writes(async ({ by, registrationId, appointmentAtS }) => {
      const row = await table.require(registrationId);
      if (row.appointmentAtS === appointmentAtS) return toRegistration(row);
      const changed = await table.change(row.id, { appointmentAtS });
      const [before, after] = [row, changed].map((one) => ({ appointmentAtS: one.appointmentAtS }));
      await recordAudit(by, 'access appoint', registrationId, { before, after });
      return toRegistration(changed);
    }),
    RemoveRegistration: writes(async ({ by, registrationId }) => {
      const row = await table.require(registrationId);
      if (row.notice === 'SENDING') throw noticeIsSending();
      if (row.notice === null) await database.delete(registration).where(eq(registration.id, row.id)).run();
      else await table.change(row.id, { ...removedTexts, removedAtS: by.atS });
      const before = { platform: row.platform, notice: row.notice };
      await recordAudit(by, 'access remove', registrationId, { before });
      return undefined;
    }),
  };
}

/** What removing a registration changes if its notice is kept. */
const removedTexts = {
  ...{ email: '', name: '', intendedUse: '', byForm: 0, appointmentAtS: null, noticeDetail: null },
  ...{ callerId: null, linkSha256: null, linkExpiresAtS: null, claimedAtS: null },
};

/** Handlers of approvals and one-time links, which may change credentials. */
export function createAccessHandlers({ database, recordAudit }: Parts): Handlers<AccessKind> {
  const table = createRegistrationRows(database);
  const { insertPlatform, insertKey } = createCallerRows(database);

  /** Sets a link, and returns the row with the hash. */
  async function link(row: RegistrationRow, { sha256, expiresAtS }: AccessLink, callerId: number | null) {
    const linkSha256 = Buffer.from(sha256);
    const to = { callerId, linkSha256, linkExpiresAtS: expiresAtS, claimedAtS: null };
    return { ...toRegistration(await table.change(row.id, to)), sha256: linkSha256 };
  }

  const isOpen = (sha256: Uint8Array, nowS: number) =>
    and(
      eq(registration.linkSha256, Buffer.from(sha256)),
      isNull(registration.claimedAtS),
      gt(registration.linkExpiresAtS, nowS),
    );

  async function refuseWithKey(row: RegistrationRow): Promise<void> {
    const isLive = and(
      eq(apiKey.callerId, row.callerId ?? 0),
      inArray(apiKey.status, ['ACTIVE', 'SUSPENDED']),
    );
    const key = await database.select({ keyId: apiKey.keyId }).from(apiKey).where(isLive).limit(1).get();
    if (key === undefined) return;
    const rule = `names a registration whose link was used: revoke ${key.keyId} first if its secret was lost`;
    throw fieldError('VALIDATION_FAILED', 'registrationId', rule);
  }

  return {
    ApproveRegistration: writes(async ({ by, registrationId, platform, link: given }) => {
      const row = await table.require(registrationId);
      if (row.callerId !== null)
        throw fieldError(
          'VALIDATION_FAILED',
          'registrationId',
          'names a registration that is approved already',
        );
      const approved = await link(row, given, await insertPlatform(platform));
      const { name, tier, monthlyQuota, filingCap } = platform;
      const limits = { tier, monthlyQuota: monthlyQuota ?? 'unlimited', filingCap: filingCap ?? 'none' };
      const after = { platform: name, ...limits, linkExpiresAtS: given.expiresAtS };
      await recordAudit(by, 'access approve', registrationId, { after });
      return approved;
    }),
    RenewAccessLink: writes(async ({ by, registrationId, link: given }) => {
      const row = await table.require(registrationId);
      if (row.callerId === null)
        throw fieldError('VALIDATION_FAILED', 'registrationId', 'names a registration that is not approved');
      if (row.linkSha256?.equals(given.sha256)) return { ...toRegistration(row), sha256: given.sha256 };
      if (row.claimedAtS !== null) await refuseWithKey(row);
      const renewed = await link(row, given, row.callerId);
      const [before, after] = [row, renewed].map((one) => ({ linkExpiresAtS: one.linkExpiresAtS }));
      await recordAudit(by, 'access renew', registrationId, { before, after });
      return renewed;
    }),
    FindAccessLink: reads(async ({ sha256, nowS }) => {
      const row = await table.first(isOpen(sha256, nowS));
      return row && toRegistration(row);
    }),
    ClaimAccess: writes(async ({ sha256, key }) => {
      const row = await table.first(isOpen(sha256, key.createdAtS));
      if (row === undefined || row.callerId === null) return undefined;
      await table.change(row.id, { claimedAtS: key.createdAtS });
      const added = await insertKey(row.callerId, key, 'ACTIVE');
      const by: Actor = { actor: `link of ${row.registrationId}`, atS: key.createdAtS, reason: undefined };
      await recordAudit(by, 'key create', added.keyId, { after: auditedKey(added) });
      return added;
    }),
  };
}
