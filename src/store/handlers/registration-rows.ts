import { and, asc, eq, getTableColumns, isNull, type SQL, sql } from 'drizzle-orm';
import { registrationNotFound } from '../../domain/registration.ts';
import { caller, registration } from '../engine/schema.ts';
import type { Database } from '../engine/statement.ts';
import type { Registration } from '../registration-commands.ts';

/** A row with the name of its platform. */
export type RegistrationRow = Omit<typeof registration.$inferSelect, 'callerId'> & {
  readonly callerId: number | null;
  readonly platform: string | null;
};

/** The rows of registrations. They change rarely, so no statement is prepared. */
export type RegistrationRows = ReturnType<typeof createRegistrationRows>;

export function createRegistrationRows(database: Database) {
  const rows = () =>
    database
      .select({ ...getTableColumns(registration), platform: caller.name })
      .from(registration)
      .leftJoin(caller, eq(caller.id, registration.callerId))
      .$dynamic();
  const first = (condition: SQL | undefined): Promise<RegistrationRow | undefined> =>
    rows().where(condition).orderBy(asc(registration.id)).limit(1).get();
  return {
    rows,
    first,
    /** Throws NOT_FOUND. */
    require: async (registrationId: string): Promise<RegistrationRow> => {
      const isThis = and(eq(registration.registrationId, registrationId), isNull(registration.removedAtS));
      const row = await first(isThis);
      if (row === undefined) throw registrationNotFound();
      return row;
    },
    /** Changes a row and returns it. */
    change: async (id: number, to: Partial<typeof registration.$inferInsert>): Promise<RegistrationRow> => {
      await database.update(registration).set(to).where(eq(registration.id, id)).run();
      return (await first(eq(registration.id, id))) as RegistrationRow;
    },
    /** The id of a registration that arrives now. Ids of removed ones at the end are used again, on both engines alike. */
    nextId: async (): Promise<number> => {
      const newest = await database
        .select({ id: sql<number>`max(${registration.id})` })
        .from(registration)
        .get();
      return Number(newest?.id ?? 0) + 1;
    },
    count: async (condition: SQL): Promise<number> => {
      const counted = await database
        .select({ rows: sql<number>`count(*)` })
        .from(registration)
        .where(condition)
        .get();
      return Number(counted?.rows ?? 0);
    },
  };
}

/** A registration as commands return it: without its digest and hash. */
export function toRegistration(row: RegistrationRow): Registration {
  const {
    emailDigest: _,
    linkSha256: _1,
    callerId: _2,
    noticeAttempt: _3,
    removedAtS: _4,
    byForm,
    ...rest
  } = row;
  return { ...rest, isByForm: byForm === 1 };
}
