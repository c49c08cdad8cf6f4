import { partyIdBounds } from '../../domain/escrow-terms.ts';
import { checkText } from '../../domain/text.ts';
import type { PaymentOrder } from '../institution.ts';

/** Who pays and who is paid, at Stripe. */
export interface StripeNames {
  /** On the platform's own account, as is the card. */
  readonly customer: string;
  readonly paymentMethod: string;
  /** The seller's connected account. */
  readonly account: string;
}

/**
 * The names that an order has, or else those in the file. Throws an Error where one of them is in neither: it was known
 * when the order was opened.
 */
export function namesOf(
  { buyer, seller, buyerId, sellerId }: PaymentOrder,
  file: StripeParties,
): StripeNames {
  const { customer, paymentMethod } = buyer ?? file.buyers.get(buyerId) ?? {};
  const account = seller?.account ?? file.sellers.get(sellerId);
  if (!customer || !paymentMethod) throw new Error('The buyer of the order is not known any more.');
  if (!account) throw new Error('The seller of the order is not known any more.');
  return { customer, paymentMethod, account };
}

/** Who the parties of the platforms are at Stripe. */
export interface StripeParties {
  /** By buyerId. */
  readonly buyers: ReadonlyMap<string, StripeBuyer>;
  /** The connected account that is paid, by sellerId. */
  readonly sellers: ReadonlyMap<string, string>;
}

/** A buyer at Stripe: the customer, and the saved card that is charged. */
export interface StripeBuyer {
  readonly customer: string;
  readonly paymentMethod: string;
}

const customerPattern = /^cus_[A-Za-z0-9]+$/;
const paymentMethodPattern = /^(pm|card)_[A-Za-z0-9_]+$/;
const accountPattern = /^acct_[A-Za-z0-9]+$/;

/** What messages call the file itself, beside the entries in it. */
const wholeFile = 'the file';

/** Reads the file of parties. Throws an Error whose message names the entry and what it must be. */
export function parseStripeParties(text: string): StripeParties {
  const file = members(parseJson(text), wholeFile, ['buyers', 'sellers']);
  return {
    buyers: entries(file.buyers, 'buyers', readBuyer),
    sellers: entries(file.sellers, 'sellers', (account, name) =>
      matching(account, name, accountPattern, 'a connected account, acct_…'),
    ),
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The words of the parser would repeat a part of the file.
    throw new Error('the file must be JSON');
  }
}

function readBuyer(value: unknown, name: string): StripeBuyer {
  const { customer, paymentMethod } = members(value, name, ['customer', 'paymentMethod']);
  return {
    customer: matching(customer, `${name}.customer`, customerPattern, 'a customer, cus_…'),
    paymentMethod: matching(
      paymentMethod,
      `${name}.paymentMethod`,
      paymentMethodPattern,
      'a payment method, pm_…',
    ),
  };
}

function entries<T>(value: unknown, name: string, read: (value: unknown, name: string) => T): Map<string, T> {
  const readEntry = ([partyId, entry]: [string, unknown]): [string, T] => {
    const entryName = `${name}[${JSON.stringify(partyId)}]`;
    const [violation] = checkText('id', partyId, partyIdBounds);
    if (violation !== undefined) throw new Error(`the id of ${entryName} ${violation.rule}`);
    return [partyId, read(entry, entryName)];
  };
  return new Map(Object.entries(asObject(value, name)).map(readEntry));
}

/** The members of an object that has these and no others. */
function members<K extends string>(value: unknown, name: string, names: readonly K[]): Record<K, unknown> {
  const object = asObject(value, name);
  const stranger = Object.keys(object).find((key) => !names.some((known) => known === key));
  if (stranger !== undefined) {
    const where = name === wholeFile ? '' : ` in ${name}`;
    throw new Error(`unknown member ${JSON.stringify(stranger)}${where}; it takes ${names.join(', ')}`);
  }
  const missing = names.find((known) => !Object.hasOwn(object, known));
  if (missing !== undefined) throw new Error(`${name} must have the member ${missing}`);
  return object as Record<K, unknown>;
}

function asObject(value: unknown, name: string): object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Error(`${name} must be an object`);
  }
  return value;
}

function matching(value: unknown, name: string, pattern: RegExp, what: string): string {
  if (typeof value !== 'string' || !pattern.test(value)) throw new Error(`${name} must be the id of ${what}`);
  return value;
}
