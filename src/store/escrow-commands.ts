import type { Escrow, EscrowState, InstructionKind, InstructionStatus } from '../domain/escrow.ts';
import type { EscrowTerms } from '../domain/escrow-terms.ts';
import type { PartyMembers } from '../domain/party.ts';
import type { Violation } from '../domain/violation.ts';
import type { BusinessTime, CallerRef } from './filing-commands.ts';
import type { Page, PageQuery } from './paging.ts';

/** Who gives an instruction, and under which name. */
export interface Work extends CallerRef {
  /** Of the instruction. */
  readonly instructionId: string;
}

/** An instruction to the provider, and its order as it is now. */
export interface Instruction {
  readonly instructionId: string;
  readonly kind: InstructionKind;
  readonly status: InstructionStatus;
  /** Why it was declined, in words for the buyer; undefined if it was not, or if that is not known. */
  readonly reason: string | undefined;
  readonly order: Escrow;
}

/** Which orders to list; undefined is any. */
export interface EscrowFilter {
  readonly owner: number | undefined;
  readonly state: EscrowState | undefined;
  readonly filingNo: string | undefined;
}

/** Escrow orders, as callers ask for them. */
export interface EscrowCommands {
  /**
   * Stores an UNPAID order with its FREEZE, prepared and due. `owner` must have filed the artwork, unless it is undefined.
   * With `parties`, both have to be registered by names for all of these, of `owner` or else of whoever filed the artwork,
   * and the order keeps to what they are registered as now. Refused with VALIDATION_FAILED for `violations`, for parties
   * that are not known and for a buyer and a seller that are one by `sameParty`; with FILING_NOT_FOUND, PERMISSION_DENIED, ESCROW_ACTIVE, TRANSFERS_EXHAUSTED,
   * ESCROW_NUMBERS_EXHAUSTED.
   */
  OpenEscrow: {
    readonly takes: {
      readonly terms: EscrowTerms;
      readonly violations: readonly Violation[];
      /** The provider ids that both need; undefined if the provider needs no registered parties. */
      readonly parties: PartyMembers | undefined;
      readonly at: BusinessTime;
      readonly work: Work;
      readonly owner: number | undefined;
    };
    readonly gives: Instruction;
  };
  /**
   * Prepares to pay the money of a FROZEN order out or back, or to cancel an UNPAID one, and makes the order due. If that is
   * under way already, the instruction that it is. Refused with ESCROW_NOT_FOUND; ESCROW_STATE_CONFLICT as `planResolution` says.
   */
  PrepareResolution: {
    readonly takes: {
      readonly resolution: 'RELEASE' | 'REFUND';
      readonly escrowId: string;
      readonly at: BusinessTime;
      readonly work: Work;
      readonly owner: number | undefined;
    };
    readonly gives: Instruction;
  };
  /** One order of `owner`, or of anybody if that is undefined. */
  GetEscrow: {
    readonly takes: { readonly escrowId: string; readonly owner: number | undefined };
    readonly gives: Escrow | undefined;
  };
  /** Orders that the filter names, newest first. */
  ListEscrows: {
    readonly takes: { readonly filter: EscrowFilter; readonly page: PageQuery };
    readonly gives: Page<Escrow>;
  };
}
