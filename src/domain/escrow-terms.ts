import { filingErased, filingNotFound } from './filing.ts';
import { checkMoney } from './money.ts';
import { transfersMax } from './provenance.ts';
import { ApiError } from './reason.ts';
import { checkText, type TextBounds } from './text.ts';
import type { Violation } from './violation.ts';

/** How a sale is secured. */
export type EscrowType = 'GUARANTEE';

/** The role of a party: the BUYER pays, the SELLER is paid. */
export type PartyRole = 'BUYER' | 'SELLER';

/** The terms of an order, as its caller sent them. */
export interface EscrowTerms {
  readonly filingNo: string;
  readonly type: EscrowType;
  /** Minor units of the settlement currency. */
  readonly amount: bigint;
  readonly buyerId: string;
  readonly sellerId: string;
}

/** Bounds of buyerId and sellerId, in code points. */
export const partyIdBounds: TextBounds = { min: 1, max: 128 };

/** The lowest amount, in minor units; the highest is moneyMax. */
export const amountMin = 1n;

/** The members of a filing that decide whether an order can be opened for it. */
export interface FilingForSale {
  readonly filingNo: string;
  /** The id of the caller that filed it; undefined if the number names no filing. */
  readonly filedBy: number | undefined;
  /** Whether it was erased after its retention. */
  readonly isErased: boolean;
  /** Its order that is UNPAID or FROZEN. */
  readonly active: { readonly escrowId: string; readonly callerId: number } | undefined;
  /** How many TRANSFER records it has. */
  readonly transfers: number;
}

/**
 * Rejects an order for a filing that `owner`, or any caller if that is undefined, cannot sell now. Throws FILING_NOT_FOUND,
 * PERMISSION_DENIED, ESCROW_ACTIVE, TRANSFERS_EXHAUSTED.
 */
export function rejectUnsaleable(filing: FilingForSale, owner: number | undefined): void {
  const { filingNo, filedBy, isErased, active, transfers } = filing;
  if (filedBy === undefined) throw filingNotFound();
  if (isErased) throw filingErased();
  if (owner !== undefined && filedBy !== owner) {
    throw new ApiError(
      'PERMISSION_DENIED',
      'Only the caller that filed the artwork may open an escrow for it.',
    );
  }
  if (active !== undefined) {
    const isVisible = owner === undefined || active.callerId === owner;
    const name = isVisible ? `: ${active.escrowId}` : '';
    throw new ApiError('ESCROW_ACTIVE', `${filingNo} has an open escrow already${name}.`);
  }
  if (transfers >= transfersMax) {
    throw new ApiError(
      'TRANSFERS_EXHAUSTED',
      `${filingNo} has ${transfersMax} transfers, the most that a filing may have; it cannot be sold again.`,
    );
  }
}

/** The member `clearing` of an escrow: a declaration of the operator, which is not checked. */
export const clearing = 'LICENSED_PSP_NO_SECOND_CLEARING';

/** Checks terms; an unknown or missing type is undefined. */
export function checkTerms(
  terms: Omit<EscrowTerms, 'type'> & { readonly type?: EscrowType | undefined },
): Violation[] {
  const violations = [
    ...(terms.filingNo === '' ? [{ field: 'filingNo', rule: 'is required' }] : []),
    ...(terms.type === undefined ? [{ field: 'type', rule: 'must be GUARANTEE' }] : []),
    ...checkMoney('amount', terms.amount, amountMin),
    ...checkText('buyerId', terms.buyerId, partyIdBounds),
    ...checkText('sellerId', terms.sellerId, partyIdBounds),
  ];
  const sameParty = terms.buyerId !== '' && terms.buyerId === terms.sellerId;
  return sameParty ? [...violations, { field: 'sellerId', rule: 'must differ from buyerId' }] : violations;
}
