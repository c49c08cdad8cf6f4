import type { PartyRules, ProviderIds } from '../src/domain/party.ts';
import type { ImportedParty } from '../src/store/party-commands.ts';
import { worldLimits } from './limits.ts';

/** The rules for the provider ids of parties: one id for each party. */
export const partyRules: PartyRules = {
  BUYER: { customer: { pattern: /./, what: 'a customer' } },
  SELLER: { account: { pattern: /./, what: 'an account' } },
};

/** The id of the seller, the same on every platform. */
export const sellerId = 'seller';

/** The id prefixes of buyers for whom the provider reports a wrong amount: always, or a few times. */
export const differing = { always: 'differs-always', aWhile: 'differs-a-while' } as const;

/** Returns whether the provider reports wrong amounts for a buyer, so that an operator must review the order. */
export const isDiffering = (buyerId: string): boolean => buyerId.startsWith('differs-');

/** The id prefixes of buyers. */
const buyerPrefixes = ['buyer', differing.always, differing.aWhile] as const;

/** Returns the id of the buyer of a sale, the same on every platform. */
export const buyerIdOf = (prefix: (typeof buyerPrefixes)[number], session: number, sale: number): string =>
  `${prefix}-${session}-${sale}`;

/** Returns the provider id of a party. */
export const nameOf = (platform: string, partyId: string): string => `${partyId} of ${platform}`;

/** Returns all parties of a platform for a number of sessions. */
export function partiesOf(caller: string, sessions: number): ImportedParty[] {
  const buyerIds = Array.from({ length: sessions * worldLimits.salesMax }, (_, index) => {
    const [session, sale] = [
      1 + Math.floor(index / worldLimits.salesMax),
      1 + (index % worldLimits.salesMax),
    ];
    return buyerPrefixes.map((prefix) => buyerIdOf(prefix, session, sale));
  }).flat();
  const seller = {
    role: 'SELLER',
    partyId: sellerId,
    providerIds: { account: nameOf(caller, sellerId) },
  } as const;
  const buyers = buyerIds.map(
    (partyId) => ({ role: 'BUYER', partyId, providerIds: { customer: nameOf(caller, partyId) } }) as const,
  );
  return [seller, ...buyers].map((party) => ({ ...party, caller }));
}

/** Returns the provider ids of the buyer and the seller of an instruction, as text. */
export const namesIn = ({
  buyer,
  seller,
}: {
  buyer?: ProviderIds | undefined;
  seller?: ProviderIds | undefined;
}) => `${buyer?.customer} pays ${seller?.account}`;
