import { and, eq, getTableColumns, isNull, sql } from 'drizzle-orm';
import { callerNotFound } from '../../domain/caller.ts';
import type { PartyRole } from '../../domain/escrow-terms.ts';
import type { NewParty, ProviderIds } from '../../domain/party.ts';
import { fieldError, rejectViolations, type Violation } from '../../domain/violation.ts';
import { type Handlers, reads, writes } from '../engine/handlers.ts';
import { oldestFirst, pageOf } from '../engine/paging.ts';
import { caller, filing, party } from '../engine/schema.ts';
import {
  type Database,
  equalsWithoutIndex,
  named,
  placeholders,
  placeholdersFor,
  prepare,
} from '../engine/statement.ts';
import type { NamedCaller, PartyCommands, PartyFilter } from '../party-commands.ts';
import { createCallerRows } from './callers.ts';
import type { Parts } from './parts.ts';

interface PartyRow {
  readonly id: number;
  readonly providerIds: ProviderIds;
  readonly addedAtS: number;
}

// A literal, so that SQLite can use the partial index.
const isKnown = sql`${party.removedAtS} IS NULL`;
const isThis = and(
  eq(party.role, sql.placeholder('role')),
  eq(party.partyId, sql.placeholder('partyId')),
  isKnown,
);

/** Finds the parties of orders. */
export type PartyRegister = ReturnType<typeof createPartyRegister>;

export function createPartyRegister(database: Database) {
  const { id, providerIds, addedAtS } = party;
  const select = () => database.select(named({ id, providerIds, addedAtS })).from(party).$dynamic();
  const filedBy = database
    .select({ callerId: filing.callerId })
    .from(filing)
    .where(eq(filing.filingNo, sql.placeholder('filingNo')));
  const { known, ofFiling, byId } = prepare(database, {
    known: select().where(and(eq(party.callerId, sql.placeholder('callerId')), isThis)),
    ofFiling: select().where(and(eq(party.callerId, sql`${filedBy}`), isThis)),
    byId: select().where(eq(party.id, sql.placeholder('id'))),
  });
  return {
    /** The current registration of a caller's party. */
    find: async (callerId: number, role: PartyRole, partyId: string): Promise<PartyRow | undefined> => {
      const row = await known.get({ callerId, role, partyId });
      return row && { ...row, providerIds: JSON.parse(row.providerIds) };
    },
    /** The provider ids of a party by its row, even if it was removed. */
    providerIdsOf: async (id: number): Promise<ProviderIds> => {
      const row = await byId.get({ id });
      if (row === undefined) throw new Error(`There is no party ${id}.`);
      return JSON.parse(row.providerIds);
    },
    /** The provider ids of a party that the owner of a filing has registered. */
    providerIdsForFiling: async (
      filingNo: string,
      role: PartyRole,
      partyId: string,
    ): Promise<ProviderIds | undefined> => {
      const row = await ofFiling.get({ filingNo, role, partyId });
      return row && JSON.parse(row.providerIds);
    },
  };
}

/** Handlers of registering parties. */
export function createPartyHandlers(
  { database, recordAudit }: Parts,
  register: PartyRegister,
): Handlers<keyof PartyCommands> {
  const { find } = createCallerRows(database);

  async function callerOf(name: string): Promise<number> {
    const found = await find(name);
    if (found === undefined) throw callerNotFound();
    return found.id;
  }

  const { put, end } = createRegistration(database, register);

  /** Caller ids by name. Throws for unknown names, together with all other violations. */
  async function idsOf(
    callers: readonly NamedCaller[],
    violations: readonly Violation[],
  ): Promise<Map<string, number>> {
    const ids = new Map<string, number>();
    const fields = new Map(callers.map(({ caller: name, field }) => [name, field]));
    const faults: Violation[] = [];
    for (const [name, field] of fields) {
      const id = (await find(name))?.id;
      if (id === undefined) faults.push({ field, rule: 'names no platform and no internal system' });
      else ids.set(name, id);
    }
    rejectViolations([...violations, ...faults]);
    return ids;
  }

  const select = () =>
    database
      .select({ ...partyColumns, caller: caller.name })
      .from(party)
      .innerJoin(caller, eq(caller.id, party.callerId))
      .$dynamic();

  return {
    AddParty: writes(async ({ caller: name, party: given, by }) => {
      const { before, isChanged, addedAtS } = await put(await callerOf(name), given, by.atS);
      const change = { before: before?.providerIds, after: given.providerIds };
      if (isChanged) await recordAudit(by, 'party add', subjectOf(name, given), change);
      return { caller: name, ...given, addedAtS };
    }),
    RemoveParty: writes(async ({ caller: name, role, partyId, by }) => {
      const found = await register.find(await callerOf(name), role, partyId);
      if (found === undefined)
        throw fieldError('NOT_FOUND', 'partyId', 'is not registered for that platform and role.');
      const { id, providerIds, addedAtS } = found;
      await end.run({ id, removedAtS: by.atS });
      await recordAudit(by, 'party remove', subjectOf(name, { role, partyId }), { before: providerIds });
      return { caller: name, role, partyId, providerIds, addedAtS };
    }),
    ListParties: reads(async ({ filter, page }) => {
      const condition = await selectedBy(filter, callerOf);
      const rows = await oldestFirst(select(), party.id, page, condition);
      return pageOf(rows, page, ({ id: _, providerIds, ...row }) => ({
        ...row,
        providerIds: JSON.parse(providerIds),
      }));
    }),
    ImportParties: writes(async ({ parties, callers, violations, isTrial, by }) => {
      const ids = await idsOf(callers, violations);
      const counts = { added: 0, replaced: 0, unchanged: 0 };
      const changed = new Set<string>();
      for (const { caller: name, ...given } of parties) {
        const { before, isChanged } = await put(
          ids.get(name) ?? (await callerOf(name)),
          given,
          by.atS,
          isTrial,
        );
        if (isChanged) changed.add(name);
        // The audit log must show where money went before it was redirected.
        if (isChanged && before !== undefined && !isTrial)
          await recordAudit(by, 'party import', subjectOf(name, given), {
            before: before.providerIds,
            after: given.providerIds,
          });
        counts[isChanged ? (before === undefined ? 'added' : 'replaced') : 'unchanged'] += 1;
      }
      if (!isTrial && changed.size > 0)
        await recordAudit(by, 'party import', subjectsOf(changed), { after: counts });
      return counts;
    }),
  };
}

function createRegistration(database: Database, register: PartyRegister) {
  const { insert, end } = prepare(database, {
    insert: database.insert(party).values({ ...placeholdersFor(party, 'id', 'removedAtS') }),
    end: database
      .update(party)
      .set(placeholders('removedAtS'))
      .where(eq(party.id, sql.placeholder('id'))),
  });

  /** Registers a party unless it has these provider ids already. Returns what was registered before. */
  async function put(
    callerId: number,
    { role, partyId, providerIds }: NewParty,
    atS: number,
    isTrial = false,
  ) {
    const before = await register.find(callerId, role, partyId);
    const text = textOf(providerIds);
    if (before !== undefined && textOf(before.providerIds) === text)
      return { before, isChanged: false, addedAtS: before.addedAtS };
    if (!isTrial) {
      if (before !== undefined) await end.run({ id: before.id, removedAtS: atS });
      await insert.run({ callerId, role, partyId, providerIds: text, addedAtS: atS });
    }
    return { before, isChanged: true, addedAtS: atS };
  }

  return { put, end };
}

const { callerId: _, removedAtS: _1, ...partyColumns } = getTableColumns(party);

/** Ordered by id without an index: with one, SQLite would sort the list for every page. */
const selectedBy = async ({ caller: name, role }: PartyFilter, callerOf: (name: string) => Promise<number>) =>
  and(
    isNull(party.removedAtS),
    name === undefined ? undefined : equalsWithoutIndex(party.callerId, await callerOf(name)),
    role === undefined ? undefined : equalsWithoutIndex(party.role, role),
  );

const subjectOf = (name: string, { role, partyId }: Omit<NewParty, 'providerIds'>): string =>
  `${role.toLowerCase()} ${partyId} of ${name}`;

/** Platforms that an audit entry names, at most. */
const namedMax = 20;

function subjectsOf(names: ReadonlySet<string>): string {
  const named = [...names].slice(0, namedMax).join(', ');
  return names.size > namedMax ? `${named} and ${names.size - namedMax} more` : named;
}

/** The provider ids as they are stored: equal ids are equal texts. */
const textOf = (providerIds: ProviderIds): string =>
  JSON.stringify(
    Object.fromEntries(Object.entries(providerIds).sort(([one], [other]) => (one < other ? -1 : 1))),
  );
