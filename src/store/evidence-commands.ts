import type { Actor } from '../domain/audit-entry.ts';
import type { Filing } from '../domain/filing.ts';
import type { RecordedFiling } from '../domain/filing-record.ts';
import type { LaterRecord } from '../domain/provenance.ts';
import type { Page, PageQuery } from './paging.ts';

/** The evidence log: an append-only Merkle tree over all records. */
export interface EvidenceCommands {
  /** Returns the current tree. */
  GetTree(): TreeState;
  /** Returns the roots of the tree at an earlier size; undefined if the tree is smaller. */
  GetRoot(command: { readonly size: number }): TreeRoots | undefined;
  /**
   * Returns the concatenated hashes of `width` complete subtrees of a level, from `place`; undefined if the tree has fewer.
   * `width` is 1 to 256.
   */
  ReadSubtrees(command: {
    readonly level: number;
    readonly place: number;
    readonly width: number;
  }): Uint8Array | undefined;
  /** Returns the data of `width` leaves from `index`; undefined if the tree has fewer. `width` is 1 to 256. */
  ReadLeaves(command: { readonly index: number; readonly width: number }): readonly string[] | undefined;
  /** Returns a leaf and its inclusion proof in the tree of that size; undefined if it is not in that tree. */
  ProveInclusion(command: {
    readonly index: number;
    readonly size: number;
  }): { readonly leaf: string; readonly path: readonly Uint8Array[] } | undefined;
  /** Returns the consistency proof between two tree sizes; undefined if the tree is smaller than `to`. */
  ProveConsistency(command: {
    readonly from: number;
    readonly to: number;
  }): readonly Uint8Array[] | undefined;
  /**
   * Returns a record of a filing with the content that its leaf hides; undefined if there is none. `sequence` 1 is the filing
   * itself.
   */
  FindRecord(command: RecordName): LoggedRecord | undefined;
  /**
   * Adds a link to a record, with an audit entry. A replay returns the first link. Also deletes some expired links. Fails
   * with FILING_NOT_FOUND if the record does not exist or is erased; with VALIDATION_FAILED if it cannot hide what is not
   * disclosed.
   */
  ShareRecord(
    command: RecordName & {
      readonly by: Actor;
      /** The caller that creates the link. */
      readonly callerId: number;
      readonly link: EvidenceLink;
      readonly expiresAtS: number;
      /** The members that the evidence discloses, such as `author,era`; undefined for all. */
      readonly disclose?: string | undefined;
    },
  ): EvidenceLink;
  /** Finds a link by its id. */
  FindLink(command: { readonly linkId: string }): StoredLink | undefined;
  /**
   * Lists the links to records of a filing of `owner`, or of any caller if that is undefined, that are not expired at `nowS`,
   * newest first. Fails with FILING_NOT_FOUND.
   */
  ListLinks(command: {
    readonly filingNo: string;
    readonly owner: number | undefined;
    readonly nowS: number;
    readonly page: PageQuery;
  }): Page<StoredLink>;
  /**
   * Revokes a link to a record of a filing of `owner`, or of any caller if that is undefined; of `filingNo`, if given. Writes an
   * audit entry unless it is revoked already. Fails with LINK_NOT_FOUND.
   */
  RevokeLink(command: {
    readonly by: Actor;
    readonly linkId: string;
    readonly filingNo: string | undefined;
    readonly owner: number | undefined;
  }): StoredLink;
  /**
   * Compares the next `leaves` leaves with the tree of GetRoot and indexes them. `saved`, from SaveLogIndex, is where the first
   * call of a process continues.
   */
  VerifyLog(command: { readonly leaves: number; readonly saved?: string | undefined }): LogVerification;
  /** Returns the index of the compared leaves, from which VerifyLog continues after a restart. */
  SaveLogIndex(): { readonly size: number; readonly saved: string };
  /** Returns the times that the wall clock is checked against. */
  ReadLogClock(): LogClock;
  /**
   * Records that an operator confirms the time of `by`, so that new records may have it even if earlier ones are dated later.
   * Returns the times before, and the accepted one, Unix seconds.
   */
  AcceptClock(command: { readonly by: Actor }): LogClock & { readonly acceptedS: number };
  /**
   * Advances the business clock by so many seconds, with an audit entry. Returns by how many seconds it is ahead then. Fails with
   * VALIDATION_FAILED if that would be more than `aheadMaxS`. Only a sandbox has such a clock.
   */
  AdvanceClock(command: { readonly by: Actor; readonly seconds: number }): number;
}

/** Progress of VerifyLog. */
export interface LogVerification {
  /** Compared leaves. */
  readonly verified: number;
  /** Leaves in total. */
  readonly size: number;
  /** Leaves that are not in the tree: their number, and a description of the first ones. */
  readonly faults: { readonly count: number; readonly first: readonly string[] };
}

/** The times of the log. */
export interface LogClock {
  /** Of the newest leaf, Unix seconds; undefined if there is none. */
  readonly newestS: number | undefined;
  /** Of the newest filing, or the time accepted since, Unix seconds; undefined if there is neither. */
  readonly datedS: number | undefined;
  /** The last time that an operator accepted, Unix seconds, and its sequence among the log events; undefined if none. */
  readonly accepted: { readonly sequence: number; readonly timeS: number } | undefined;
  /** By how many seconds the business clock is ahead of the real one. */
  readonly aheadS: number;
  /** The clock of the database server, Unix milliseconds; undefined for an engine without a server. */
  readonly databaseMs?: number | undefined;
}

/** Names a record of a filing of `owner`, or of any caller if that is undefined. */
export interface RecordName {
  readonly filingNo: string;
  /** Its number among the records of the filing, from 1. */
  readonly sequence: number;
  readonly owner: number | undefined;
}

/** A link to evidence, as returned to its creator. */
export interface EvidenceLink {
  /** Public handle. It gives no access. */
  readonly linkId: string;
  /** Path on the public listener. */
  readonly path: string;
  /** RFC 3339, whole seconds, numeric offset. */
  readonly expiresAt: string;
}

/** A link to evidence. It is kept for some time after it expires. */
export interface StoredLink {
  readonly linkId: string;
  readonly filingNo: string;
  readonly sequence: number;
  /** Unix seconds. */
  readonly createdAtS: number;
  readonly expiresAtS: number;
  /** Null unless it was revoked. */
  readonly revokedAtS: number | null;
  /** The members that the evidence discloses, such as `author,era`; null for all. */
  readonly disclose: string | null;
}

/** The root of a tree of the log, 32 bytes each. */
export interface TreeRoots {
  /** Of the tree that records are compared with. */
  readonly root: Uint8Array;
  /** Of the stored hashes. It differs only if stored data was changed. */
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
  /** Undefined once it is erased. */
  readonly content:
    | ((
        | { readonly kind: 'FILING'; readonly filing: RecordedFiling & Pick<Filing, 'hash'> }
        | { readonly kind: 'TRANSFER'; readonly record: LaterRecord }
      ) & { readonly salt: Uint8Array })
    | undefined;
  /** The index of its leaf, from 0. */
  readonly leafIndex: number;
}
