import type { Actor } from '../domain/audit-entry.ts';
import type { PartyRole } from '../domain/escrow-terms.ts';
import type { NewParty } from '../domain/party.ts';
import type { Violation } from '../domain/violation.ts';
import type { Page, PageQuery } from './paging.ts';

/** A registered party. */
export interface Party extends NewParty {
  /** The name of the platform or internal system that it belongs to. */
  readonly caller: string;
  /** Unix seconds. */
  readonly addedAtS: number;
}

/** Which parties to list; undefined is any. */
export interface PartyFilter {
  /** Name of a platform or internal system. */
  readonly caller: string | undefined;
  readonly role: PartyRole | undefined;
}

/** A party of an import, and the caller that it belongs to. */
export interface ImportedParty extends NewParty {
  readonly caller: string;
}

/** A platform or internal system that an import names. */
export interface NamedCaller {
  readonly caller: string;
  /** The field that an error names if there is no such caller. */
  readonly field: string;
}

/** The result of an import. */
export interface Imported {
  readonly added: number;
  /** Parties that had other provider ids. */
  readonly replaced: number;
  readonly unchanged: number;
}

/**
 * The parties of each platform or internal system: the provider ids of its buyerIds and sellerIds. A registration never
 * changes, it is replaced or removed, so an order keeps the parties that it was opened with.
 */
export interface PartyCommands {
  /** Registers a party and replaces the one that had its id. Fails with NOT_FOUND if there is no such caller. */
  AddParty(command: { readonly caller: string; readonly party: NewParty; readonly by: Actor }): Party;
  /** Removes a party and returns it. Fails with NOT_FOUND. */
  RemoveParty(command: {
    readonly caller: string;
    readonly role: PartyRole;
    readonly partyId: string;
    readonly by: Actor;
  }): Party;
  /** Lists parties in the order of registration. Fails with NOT_FOUND for `filter.caller`. */
  ListParties(command: { readonly filter: PartyFilter; readonly page: PageQuery }): Page<Party>;
  /**
   * Registers parties. Each replaces the one that had its id; none is removed. With `isTrial` it returns the result and changes
   * nothing. Writes one audit entry, and one more for each replaced party. Fails with VALIDATION_FAILED for `violations` and for
   * unknown names in `callers`, which has one entry per party, all in one error.
   */
  ImportParties(command: {
    readonly parties: readonly ImportedParty[];
    readonly callers: readonly NamedCaller[];
    readonly violations: readonly Violation[];
    readonly isTrial: boolean;
    readonly by: Actor;
  }): Imported;
}
