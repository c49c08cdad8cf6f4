import type { Escrow, EscrowState, InstructionKind, InstructionStatus } from '../domain/escrow.ts';
import type { EscrowTerms } from '../domain/escrow-terms.ts';
import type { PartyMembers } from '../domain/party.ts';
import type { Violation } from '../domain/violation.ts';
import type { BusinessTime, CallerRef } from './filing-commands.ts';
import type { Page, PageQuery } from './paging.ts';

/** The caller that gives an instruction, and the instruction's id. */
export interface Work extends CallerRef {
  readonly instructionId: string;
}

/** An instruction to the provider, and its order in its current state. */
export interface Instruction {
  readonly instructionId: string;
  readonly kind: InstructionKind;
  readonly status: InstructionStatus;
  /** Why it was declined, for the buyer; undefined if it was not, or if the reason is not known. */
  readonly reason: string | undefined;
  readonly order: Escrow;
}

/** Which orders to list; undefined is any. */
export interface EscrowFilter {
  readonly owner: number | undefined;
  readonly state: EscrowState | undefined;
  readonly filingNo: string | undefined;
}

/** Escrow orders of callers. */
export interface EscrowCommands {
  /**
   * Opens an UNPAID order with its FREEZE, prepared and due in a moment. `owner`, unless undefined, must have filed the artwork.
   *
   * With `parties`, buyer and seller must be registered with these provider ids, for `owner` or else for the caller that filed
   * the artwork. The order keeps the ids as registered now.
   *
   * Fails with VALIDATION_FAILED for `violations`, for unknown parties, and if buyer and seller are one by `sameParty`; with
   * FILING_NOT_FOUND, PERMISSION_DENIED, ESCROW_ACTIVE, TRANSFERS_EXHAUSTED, ESCROW_NUMBERS_EXHAUSTED.
   */
  OpenEscrow(command: {
    readonly terms: EscrowTerms;
    readonly violations: readonly Violation[];
    /** The provider ids that both need; undefined if the provider needs no registered parties. */
    readonly parties: PartyMembers | undefined;
    readonly at: BusinessTime;
    readonly work: Work;
    readonly owner: number | undefined;
  }): Instruction;
  /**
   * Prepares the payout or refund of a FROZEN order, or the cancellation of an UNPAID one, and makes the order due in a moment.
   * Returns the existing instruction if that is under way. Fails with ESCROW_NOT_FOUND, and with ESCROW_STATE_CONFLICT as
   * `planResolution` says.
   */
  PrepareResolution(command: {
    readonly resolution: 'RELEASE' | 'REFUND';
    readonly escrowId: string;
    readonly at: BusinessTime;
    readonly work: Work;
    readonly owner: number | undefined;
  }): Instruction;
  /** Returns an order of `owner`, or of any caller if that is undefined. */
  GetEscrow(command: { readonly escrowId: string; readonly owner: number | undefined }): Escrow | undefined;
  /** Lists orders, newest first. */
  ListEscrows(command: { readonly filter: EscrowFilter; readonly page: PageQuery }): Page<Escrow>;
}
