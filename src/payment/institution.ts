import type { EscrowTerms } from '../domain/escrow.ts';

/**
 * A licensed payment institution: it holds the money, the service instructs it.
 *
 * Idempotence: an instruction is identified by what it is and by its escrow id; given again, it has no further
 * effect and its verdict is the same. Durability: a verdict, once given, is final.
 *
 * A rejected promise, or none that settles, means that the verdict is not known: the instruction may have been
 * carried out, or may be later.
 */
export interface Institution {
  /** Takes the amount from the buyer and holds it for the order. */
  freeze(order: PaymentOrder): Promise<Verdict>;
  /** Pays the held amount out to the seller. */
  release(order: PaymentOrder): Promise<Verdict>;
}

/** What the institution is told of an escrow order. */
export interface PaymentOrder extends Pick<EscrowTerms, 'amount' | 'buyerId' | 'sellerId'> {
  readonly escrowId: string;
}

/** The institution's last word on an instruction. */
export type Verdict = 'CONFIRMED' | 'DECLINED';

/** Instructs an institution only after all that the instruction rests on is on disk. */
export function instructWhenDurable(institution: Institution, durable: () => Promise<void>): Institution {
  return {
    freeze: async (order) => {
      await durable();
      return institution.freeze(order);
    },
    release: async (order) => {
      await durable();
      return institution.release(order);
    },
  };
}
