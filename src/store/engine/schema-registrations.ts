import { sql } from 'drizzle-orm';
import { blob, index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import type { Tier } from '../../domain/caller.ts';
import type { NoticeState } from '../../domain/registration.ts';
import { caller } from './schema-callers.ts';

/** Pre-registrations. Their ids are the order of arrival. */
export const registration = sqliteTable(
  'registration',
  {
    id: integer().primaryKey(),
    registrationId: text('registration_id').notNull().unique(),
    /** Identifies the address, also after the registration was removed. */
    emailDigest: blob('email_digest', { mode: 'buffer' }).notNull().unique(),
    /** As it was given. This and the next two are empty once the registration was removed. */
    email: text().notNull(),
    name: text().notNull(),
    intendedUse: text('intended_use').notNull(),
    /** The tier that the person wishes. */
    tier: text().$type<Tier>().notNull(),
    /** 1 if the form added it, and it was not removed. */
    byForm: integer('by_form').notNull(),
    registeredAtS: integer('registered_at_s').notNull(),
    appointmentAtS: integer('appointment_at_s'),
    /** The platform that was made for it; null until it is approved. */
    callerId: integer('caller_id').references(() => caller.id),
    /** Of the token of the one-time link. */
    linkSha256: blob('link_sha256', { mode: 'buffer' }).unique(),
    linkExpiresAtS: integer('link_expires_at_s'),
    /** When the key was issued. */
    claimedAtS: integer('claimed_at_s'),
    /** Null until an attempt to send the notice begins. */
    notice: text().$type<NoticeState>(),
    /** The id of that attempt, and when it began or ended. */
    noticeAttempt: text('notice_attempt'),
    noticeAtS: integer('notice_at_s'),
    /** The words of the mail server, or of the operator. */
    noticeDetail: text('notice_detail'),
    /** Set if only the notice is kept, so that the address never gets a second one. */
    removedAtS: integer('removed_at_s'),
  },
  (table) => [
    index('registration_due').on(table.id).where(sql`${table.notice} IS NULL`),
    index('registration_sending').on(table.id).where(sql`${table.notice} = 'SENDING'`),
    index('registration_by_form').on(table.id).where(sql`${table.byForm} = 1`),
  ],
);
