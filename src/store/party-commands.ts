import type { Actor } from '../domain/audit-entry.ts';
import type { PartyRole } from '../domain/escrow-terms.ts';
import type { NewParty } from '../domain/party.ts';
import type { Violation } from '../domain/violation.ts';
import type { Page, PageQuery } from './paging.ts';

/** A party that is known. */
export interface Party extends NewParty {
  /** Name of the platform, or internal system, whose party it is. */
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

/** A party of an import, and whose it is. */
export interface ImportedParty extends NewParty {
  readonly caller: string;
}

/** A platform or internal system that an import names. */
export interface NamedCaller {
  readonly caller: string;
  /** What a fault calls this, if it is nobody's name. */
  readonly field: string;
}

/** What an import comes to. */
export interface Imported {
  readonly added: number;
  /** Those that were known by other names. */
  readonly replaced: number;
  readonly unchanged: number;
}

/**
 * The parties of each platform or internal system: whom its buyerIds and sellerIds name at the provider. What is
 * registered never changes, it is replaced or removed, so that an order goes on with the parties that it was opened for.
 */
export interface PartyCommands {
  /** Registers a party, in place of the one that had its id. Refused with NOT_FOUND if nobody is called `caller`. */
  AddParty: {
    readonly takes: { readonly caller: string; readonly party: NewParty; readonly by: Actor };
    readonly gives: Party;
  };
  /** Removes a party: what it was. Refused with NOT_FOUND. */
  RemoveParty: {
    readonly takes: {
      readonly caller: string;
      readonly role: PartyRole;
      readonly partyId: string;
      readonly by: Actor;
    };
    readonly gives: Party;
  };
  /** Parties that are known, in the order in which they were registered. Refused with NOT_FOUND for `filter.caller`. */
  ListParties: {
    readonly takes: { readonly filter: PartyFilter; readonly page: PageQuery };
    readonly gives: Page<Party>;
  };
  /**
   * Registers parties, each in place of the one that had its id, and removes none; with `isTrial` it only tells what that
   * would come to. It is one act, and one more for each party that was known by other names. Refused with VALIDATION_FAILED for `violations` and for those of `callers`, which has that of each
   * party, that nobody is called: all together.
   */
  ImportParties: {
    readonly takes: {
      readonly parties: readonly ImportedParty[];
      readonly callers: readonly NamedCaller[];
      readonly violations: readonly Violation[];
      readonly isTrial: boolean;
      readonly by: Actor;
    };
    readonly gives: Imported;
  };
}
