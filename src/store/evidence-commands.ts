import type { Actor } from '../domain/audit-entry.ts';
import type { Filing } from '../domain/filing.ts';
import type { LaterRecord } from '../domain/provenance.ts';
import type { Page, PageQuery } from './paging.ts';

/** The evidence log: a Merkle tree over all that was recorded, which is only ever appended to. */
export interface EvidenceCommands {
  /** The tree as it is. */
  GetTree: { readonly takes: object; readonly gives: TreeState };
  /** The roots of the tree as it was at a size up to that of today: undefined for a greater one. */
  GetRoot: { readonly takes: { readonly size: number }; readonly gives: TreeRoots | undefined };
  /**
   * The hashes of `width` complete subtrees of a level, from a place on, one behind the other: undefined where the tree has not
   * that many. `width` is 1 to 256.
   */
  ReadSubtrees: {
    readonly takes: { readonly level: number; readonly place: number; readonly width: number };
    readonly gives: Uint8Array | undefined;
  };
  /** The data of `width` leaves from an index on: undefined where the tree has not that many. `width` is 1 to 256. */
  ReadLeaves: {
    readonly takes: { readonly index: number; readonly width: number };
    readonly gives: readonly string[] | undefined;
  };
  /** A leaf, and the hashes that prove that it is in the tree of that size; undefined where it is not. */
  ProveInclusion: {
    readonly takes: { readonly index: number; readonly size: number };
    readonly gives: { readonly leaf: string; readonly path: readonly Uint8Array[] } | undefined;
  };
  /** The hashes that prove that the tree of size `to` begins with that of size `from`; undefined where it is not so large. */
  ProveConsistency: {
    readonly takes: { readonly from: number; readonly to: number };
    readonly gives: readonly Uint8Array[] | undefined;
  };
  /**
   * A record of a filing of `owner`, or of anybody if that is undefined, with what its leaf hides: by its place among those of
   * the filing, of which 1 is the filing itself. Undefined if there is none.
   */
  FindRecord: { readonly takes: RecordName; readonly gives: LoggedRecord | undefined };
  /**
   * Adds a link to a record. It gives the link as it was handed over, or as it was first handed over under the same
   * Idempotency-Key, and leaves an act. Some links that have expired are deleted. Refused with FILING_NOT_FOUND if there is no such
   * record, or it is erased.
   */
  ShareRecord: {
    readonly takes: RecordName & {
      readonly by: Actor;
      /** Who makes it. */
      readonly callerId: number;
      readonly link: EvidenceLink;
      readonly expiresAtS: number;
    };
    readonly gives: EvidenceLink;
  };
  /** A link by its id; undefined for one that is not known. */
  FindLink: { readonly takes: { readonly linkId: string }; readonly gives: StoredLink | undefined };
  /**
   * The links to records of a filing of `owner`, or of anybody if that is undefined, that have not expired at `nowS`; newest first.
   * Refused with FILING_NOT_FOUND.
   */
  ListLinks: {
    readonly takes: {
      readonly filingNo: string;
      readonly owner: number | undefined;
      readonly nowS: number;
      readonly page: PageQuery;
    };
    readonly gives: Page<StoredLink>;
  };
  /**
   * Revokes a link to a record of a filing of `owner`, or of anybody if that is undefined: of `filingNo`, if that is given. Leaves an
   * act unless it was revoked before. Refused with LINK_NOT_FOUND.
   */
  RevokeLink: {
    readonly takes: {
      readonly by: Actor;
      readonly linkId: string;
      readonly filingNo: string | undefined;
      readonly owner: number | undefined;
    };
    readonly gives: StoredLink;
  };
  /**
   * Compares so many leaves more with the tree whose root GetRoot gives, and reads what they say; `saved` of SaveLogIndex is
   * where it begins, if this process compared nothing yet.
   */
  VerifyLog: {
    readonly takes: { readonly leaves: number; readonly saved?: string | undefined };
    readonly gives: LogVerification;
  };
  /** What was read of the leaves that were compared, to begin with after a restart. */
  SaveLogIndex: { readonly takes: object; readonly gives: { readonly size: number; readonly saved: string } };
  /** What the wall clock is held against. */
  ReadLogClock: { readonly takes: object; readonly gives: LogClock };
  /**
   * Notes that the operator knows the time of `by` to be right: the records that follow may bear it, whatever those before
   * bear. What was so before.
   */
  AcceptClock: { readonly takes: { readonly by: Actor }; readonly gives: LogClock };
}

/** How far the leaves in the tables were compared with the tree. */
export interface LogVerification {
  /** Leaves that were compared. */
  readonly verified: number;
  /** Leaves that there are. */
  readonly size: number;
  /** Those that are not in the tree: how many, and the first of them in words. */
  readonly faults: { readonly count: number; readonly first: readonly string[] };
}

/** The times of the log. */
export interface LogClock {
  /** That of the newest leaf, Unix seconds; undefined if there is none. */
  readonly newestS: number | undefined;
  /** That of the newest filing, or the one that was accepted since, Unix seconds; undefined if there is neither. */
  readonly datedS: number | undefined;
  /** The last time that an operator accepted, Unix seconds, and its place among the acts of the log; undefined if none did. */
  readonly accepted: { readonly sequence: number; readonly timeS: number } | undefined;
}

/** A record by its filing and its place, if it is one that `owner` may see: anybody if that is undefined. */
export interface RecordName {
  readonly filingNo: string;
  /** The place among the records of the filing, from 1. */
  readonly sequence: number;
  readonly owner: number | undefined;
}

/** A link to evidence as it is handed over. */
export interface EvidenceLink {
  /** Public handle, which opens nothing. */
  readonly linkId: string;
  /** At the public door. */
  readonly path: string;
  /** RFC 3339, whole seconds, numeric offset. */
  readonly expiresAt: string;
}

/** A link to evidence, as it is kept until some time after it expires. */
export interface StoredLink {
  readonly linkId: string;
  readonly filingNo: string;
  readonly sequence: number;
  /** Unix seconds. */
  readonly createdAtS: number;
  readonly expiresAtS: number;
  /** Null unless it was revoked. */
  readonly revokedAtS: number | null;
}

/** The root of a tree of the log, 32 bytes each. */
export interface TreeRoots {
  /** That of the tree which records are compared with. */
  readonly root: Uint8Array;
  /** That of the hashes which are stored for it. It is the same unless somebody changed what is stored. */
  readonly stored: Uint8Array;
}

/** A tree of the log. */
export interface TreeState {
  /** How many leaves it has. */
  readonly size: number;
  /** Its root, 32 bytes. */
  readonly root: Uint8Array;
}

/** A record as it was logged. */
export interface LoggedRecord {
  /** What was recorded; undefined once it is erased. */
  readonly content:
    | ((
        | { readonly kind: 'FILING'; readonly filing: Filing }
        | { readonly kind: 'TRANSFER'; readonly record: LaterRecord }
      ) & { readonly salt: Uint8Array })
    | undefined;
  /** Its leaf, from 0. */
  readonly leafIndex: number;
}
