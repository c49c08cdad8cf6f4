import type { PartyRules, ProviderIds } from '../src/domain/party.ts';
import type { ImportedParty } from '../src/store/party-commands.ts';
import { worldLimits } from './limits.ts';

/** The provider ids of parties: one for each. */
export const partyRules: PartyRules = {
  BUYER: { customer: { pattern: /./, what: 'a customer' } },
  SELLER: { account: { pattern: /./, what: 'an account' } },
};

/** The seller of every platform. */
export const sellerId = 'seller';

/** How the buyers' names begin whose amounts the provider reports wrongly: always, or a few times. */
export const differing = { always: 'differs-always', aWhile: 'differs-a-while' } as const;

/** Whether a person is bound to have to look at the orders of a buyer. */
export const isDiffering = (buyerId: string): boolean => buyerId.startsWith('differs-');

/** How the ids of buyers begin. */
export const buyerPrefixes = ['buyer', differing.always, differing.aWhile] as const;

/** The buyer of a sale: the same id on every platform. */
export const buyerIdOf = (prefix: (typeof buyerPrefixes)[number], session: number, sale: number): string =>
  `${prefix}-${session}-${sale}`;

/** What the provider calls a party of a platform. */
export const nameOf = (platform: string, partyId: string): string => `${partyId} of ${platform}`;

/** All parties of a platform, in a world of so many sessions. */
export function partiesOf(caller: string, sessions: number): ImportedParty[] {
  const buyerIds = Array.from({ length: sessions * worldLimits.salesMax }, (_, place) => {
    const [session, sale] = [
      1 + Math.floor(place / worldLimits.salesMax),
      1 + (place % worldLimits.salesMax),
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

/** Who pays and who is paid, as an instruction names them. */
export const namesIn = ({
  buyer,
  seller,
}: {
  buyer?: ProviderIds | undefined;
  seller?: ProviderIds | undefined;
}) => `${buyer?.customer} pays ${seller?.account}`;
