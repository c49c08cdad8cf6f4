import { type PartyRole, partyIdBounds } from './escrow-terms.ts';
import type { ApiError } from './reason.ts';
import { checkText } from './text.ts';
import { ValidationError, type Violation } from './violation.ts';

/** The roles that a party is registered in. */
export const partyRoles = ['BUYER', 'SELLER'] as const satisfies readonly PartyRole[];

/** The provider's own names for a party, by what they name: `{ customer: 'cus_…', paymentMethod: 'pm_…' }`. */
export type PartyNames = Readonly<Record<string, string>>;

/** A name that the provider has for a party: its form, and what it is, in words: "a customer, cus_…". */
export interface PartyNameRule {
  readonly pattern: RegExp;
  readonly what: string;
}

/** The names that a party of each role has to be registered with, by what they name. */
export type PartyRules = Readonly<Record<PartyRole, Readonly<Record<string, PartyNameRule>>>>;

/** What each of the names of a party names, by its role. */
export type PartyMembers = Readonly<Record<PartyRole, readonly string[]>>;

/** A buyer or seller to register: the buyerId or sellerId of its platform, and what the provider knows it by. */
export interface NewParty {
  readonly role: PartyRole;
  readonly partyId: string;
  readonly names: PartyNames;
}

/** The longest name that is taken, in UTF-16 units, whatever the pattern of the provider. */
const nameLengthMax = 255;

/** Why nobody is registered where the provider takes anybody. */
export const nobodyRegistered: Violation = {
  field: 'names',
  rule: 'are for a payment provider that has to be told who a party is; at the one that is set, anybody is a party',
};

/** What the names of a party have to name, by its role; undefined where nobody has to be registered. */
export function membersOf(rules: PartyRules | undefined): PartyMembers | undefined {
  return rules && { BUYER: Object.keys(rules.BUYER), SELLER: Object.keys(rules.SELLER) };
}

/** The fields of a party that break their rules, a name as `names.customer`. */
export function checkParty(
  { role, partyId, names }: Omit<NewParty, 'role'> & { readonly role: PartyRole | undefined },
  rules: PartyRules | undefined,
): Violation[] {
  if (rules === undefined) return [nobodyRegistered];
  const violations = [...checkRole(role), ...checkText('partyId', partyId, partyIdBounds)];
  return role === undefined ? violations : [...violations, ...checkNames(names, rules[role])];
}

/** Checks a role that was looked up, and is undefined if the word is none. */
export function checkRole(role: PartyRole | undefined): Violation[] {
  return role === undefined ? [{ field: 'role', rule: `must be ${partyRoles.join(' or ')}` }] : [];
}

function checkNames(names: PartyNames, rules: PartyRules[PartyRole]): Violation[] {
  const wanted = Object.entries(rules).flatMap(([member, { pattern, what }]) => {
    const field = `names.${member}`;
    const name = Object.hasOwn(names, member) ? names[member] : undefined;
    if (name === undefined) return [{ field, rule: `is required: the id of ${what}` }];
    const isGood = name.length <= nameLengthMax && pattern.test(name);
    return isGood
      ? []
      : [{ field, rule: `must be the id of ${what}, of at most ${nameLengthMax} characters` }];
  });
  const hasStrangers = Object.keys(names).some((member) => !Object.hasOwn(rules, member));
  const takes = Object.keys(rules).join(' and ');
  return hasStrangers ? [...wanted, { field: 'names', rule: `must have ${takes}, and no other` }] : wanted;
}

/** Whether a party is known by a name for each of these. */
export function isNamed(names: PartyNames, members: readonly string[]): boolean {
  return members.every((member) => Object.hasOwn(names, member));
}

/** The parties of an order that nobody registered; one that another platform has is told of in the same words. */
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
 * Refuses a buyer and a seller that are one at the provider: a name of each that names the same kind of thing, a user or a
 * wallet for example, is equal. One that differs alone makes no other party.
 */
export function sameParty(buyer: PartyNames, seller: PartyNames): Violation[] {
  const shared = Object.keys(buyer).filter((member) => buyer[member] === seller[member]);
  if (shared.length === 0) return [];
  const rule = `must differ from buyerId at the payment provider: both are registered with the same ${shared.join(' and ')}`;
  return [{ field: 'sellerId', rule }];
}

/** The error to remove a party that is not known. */
export const partyNotFound = (): ApiError =>
  new ValidationError('NOT_FOUND', [{ field: 'partyId', rule: 'names no party of that platform and role.' }]);
