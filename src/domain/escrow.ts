import { createHmac } from 'node:crypto';
import { checkMoney } from './money.ts';
import { Refusal } from './reason.ts';
import { checkText, type TextBounds } from './text.ts';
import type { Violation } from './violation.ts';

/** Where the money of an order stands. */
export type EscrowState = 'UNPAID' | 'FROZEN' | 'RELEASED' | 'REFUNDED' | 'CLOSED';

/** How a sale is secured. */
export type EscrowType = 'GUARANTEE';

/** What a caller asks for. */
export interface EscrowTerms {
  readonly filingNo: string;
  readonly type: EscrowType;
  /** Minor units of the settlement currency. */
  readonly amount: bigint;
  readonly buyerId: string;
  readonly sellerId: string;
}

/** An escrow order. */
export interface Escrow extends EscrowTerms {
  readonly escrowId: string;
  readonly state: EscrowState;
  /** When it was opened: RFC 3339, whole seconds, numeric offset. */
  readonly timestamp: string;
  /** Name of the caller that opened it. */
  readonly caller: string;
}

/** What the institution confirmed, and the one state that each confirmation leads from and to. */
export const escrowMoves = {
  frozen: { from: 'UNPAID', to: 'FROZEN' },
  declined: { from: 'UNPAID', to: 'CLOSED' },
  released: { from: 'FROZEN', to: 'RELEASED' },
} as const satisfies Record<string, { from: EscrowState; to: EscrowState }>;

/** A confirmation of the institution. */
export type EscrowMove = keyof typeof escrowMoves;

/** Bounds of buyerId and sellerId, in code points. */
export const partyIdBounds: TextBounds = { min: 1, max: 128 };

/** The lowest amount, in minor units; the highest is moneyMax. */
export const amountMin = 1n;

/** What an escrow answers as its clearing: the service holds no funds. */
export const clearing = 'LICENSED_PSP_NO_SECOND_CLEARING';

/** The terms that break their rules; an unknown or unsent type is undefined. */
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

const digitsHalf = 2;
const half = 36 ** digitsHalf;
const scrambleRounds = 10;

/** The last number of a year: every id of four characters has its turn. */
export const escrowSequenceMax = half * half;

/**
 * The escrow id of a place (1 to escrowSequenceMax) in a year: ES-<year>-<4 of 0-9A-Z>.
 *
 * A keyed Feistel network over two halves of 36^2 values permutes the places, so ids never repeat within
 * a year and the next one cannot be told from those before it without the key.
 */
export function escrowId(year: number, sequence: number, key: Uint8Array): string {
  if (sequence > escrowSequenceMax) {
    throw new Refusal('ESCROW_NUMBERS_EXHAUSTED', `All ${escrowSequenceMax} escrow ids of ${year} are used.`);
  }
  let left = Math.floor((sequence - 1) / half);
  let right = (sequence - 1) % half;
  for (let round = 0; round < scrambleRounds; round += 1) {
    const mac = createHmac('sha256', key).update(`${year}/${round}/${right}`).digest();
    [left, right] = [right, (left + mac.readUIntBE(0, 6)) % half];
  }
  const digits = (value: number) => value.toString(36).toUpperCase().padStart(digitsHalf, '0');
  return `ES-${year}-${digits(left)}${digits(right)}`;
}
