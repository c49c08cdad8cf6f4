import { type PartyRole, partyIdBounds } from './escrow-terms.ts';
import { checkText } from './text.ts';
import type { Violation } from './violation.ts';

/** The roles that a party is registered in. */
export const partyRoles = ['BUYER', 'SELLER'] as const satisfies readonly PartyRole[];

/** Parties of one import. It is one transaction, and the server rejects writes that wait long for it. */
export const partiesPerImportMax = 2_000;

/** The ids of a party at the payment provider: `{ customer: 'cus_…', paymentMethod: 'pm_…' }`. */
export type ProviderIds = Readonly<Record<string, string>>;

/** The form of a provider id, and what it identifies: "a customer, cus_…". */
export interface ProviderIdRule {
  readonly pattern: RegExp;
  readonly what: string;
}

/** The provider ids that a party of each role needs. */
export type PartyRules = Readonly<Record<PartyRole, Readonly<Record<string, ProviderIdRule>>>>;

/** The members of ProviderIds that a party of each role needs. */
export type PartyMembers = Readonly<Record<PartyRole, readonly string[]>>;

/** A buyer or seller to register; the partyId is the buyerId or sellerId of its platform. */
export interface NewParty {
  readonly role: PartyRole;
  readonly partyId: string;
  readonly providerIds: ProviderIds;
}

/** The longest provider id, in UTF-16 units. */
const idLengthMax = 255;

/** The violation of registering a party at a provider that needs no registration. */
export const nobodyRegistered: Violation = {
  field: 'providerIds',
  rule: 'are not used: the configured payment provider needs no registered parties',
};

/** The members that rules ask for; undefined if the provider needs no registered parties. */
export function membersOf(rules: PartyRules | undefined): PartyMembers | undefined {
  return rules && { BUYER: Object.keys(rules.BUYER), SELLER: Object.keys(rules.SELLER) };
}

/** The fields of a party that break their rules, such as `providerIds.customer`. */
export function checkParty(
  { role, partyId, providerIds }: Omit<NewParty, 'role'> & { readonly role: PartyRole | undefined },
  rules: PartyRules | undefined,
): Violation[] {
  if (rules === undefined) return [nobodyRegistered];
  const violations = [...checkRole(role), ...checkText('partyId', partyId, partyIdBounds)];
  return role === undefined ? violations : [...violations, ...checkProviderIds(providerIds, rules[role])];
}

/** Checks a role, which is undefined if the word for it was unknown. */
export function checkRole(role: PartyRole | undefined): Violation[] {
  return role === undefined ? [{ field: 'role', rule: `must be ${partyRoles.join(' or ')}` }] : [];
}

function checkProviderIds(providerIds: ProviderIds, rules: PartyRules[PartyRole]): Violation[] {
  const wanted = Object.entries(rules).flatMap(([member, { pattern, what }]) => {
    const field = `providerIds.${member}`;
    const name = Object.hasOwn(providerIds, member) ? providerIds[member] : undefined;
    if (name === undefined) return [{ field, rule: `is required: the id of ${what}` }];
    const isGood = name.length <= idLengthMax && pattern.test(name);
    return isGood ? [] : [{ field, rule: `must be the id of ${what}, of at most ${idLengthMax} characters` }];
  });
  const hasOthers = Object.keys(providerIds).some((member) => !Object.hasOwn(rules, member));
  const takes = Object.keys(rules).join(' and ');
  return hasOthers ? [...wanted, { field: 'providerIds', rule: `must have ${takes}, and no other` }] : wanted;
}

/** The parties of an order that are not registered. A party of another platform gets the same message. */
export function unknownParties(found: {
  readonly buyer: object | undefined;
  readonly seller: object | undefined;
}): Violation[] {
  const rule =
    'is not known to the payment provider: the operator of this service registers it (artseal party add)';
  return (['buyer', 'seller'] as const)
    .filter((role) => found[role] === undefined)
    .map((role) => ({ field: `${role}Id`, rule }));
}

/**
 * Rejects a buyer and a seller that are the same at the provider: one of their provider ids, such as the user or the wallet,
 * is equal.
 */
export function sameParty(buyer: ProviderIds, seller: ProviderIds): Violation[] {
  const shared = Object.keys(buyer).filter((member) => buyer[member] === seller[member]);
  if (shared.length === 0) return [];
  const rule = `must differ from buyerId at the payment provider: both are registered with the same ${shared.join(' and ')}`;
  return [{ field: 'sellerId', rule }];
}
