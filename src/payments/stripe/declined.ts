import { type Declined, unexplainedWords } from '../../domain/payment.ts';

/** Why Stripe rejected something: an error of its library, or the last error of a PaymentIntent. */
export interface StripeReason {
  readonly type?: string | undefined;
  readonly code?: string | undefined;
  /** Why the card issuer, or Stripe itself, declined a card. */
  readonly decline_code?: string | undefined;
  /** The code of the card network. */
  readonly network_decline_code?: string | undefined;
  /** The rejected parameter. */
  readonly param?: string | undefined;
  readonly message?: string | undefined;
  readonly requestId?: string | undefined;
}

/**
 * Returns why an instruction was not carried out: a code, words for the buyer and details for the operator. None contains a
 * card number, an id of the buyer at Stripe or a secret.
 */
export function declinedFor(reason: StripeReason): Declined {
  const given = reason.decline_code || reason.code || reason.type || 'declined';
  const code = concealed.has(given) ? 'generic_decline' : given;
  return { code, words: wordsFor(code, reason), detail: detailOf(reason) };
}

/**
 * Codes that the buyer does not see: a person who pays with a lost or suspected card must not learn that it was noticed.
 * Stripe asks for this for the first four; the others hint at the same.
 */
const concealed: ReadonlySet<string> = new Set([
  'fraudulent',
  'lost_card',
  'merchant_blacklist',
  'stolen_card',
  'elevated_risk_level',
  'highest_risk_level',
  'pickup_card',
  'restricted_card',
  'security_violation',
]);

const unsaid = 'The card issuer declined the payment without saying why; another card may do.';
const unusable = 'The saved card cannot be used any more; the buyer has to save a card again.';
const wrongDetails = 'What was saved of the card is not right; the buyer has to save it again.';
const notForThis = 'The card cannot be used for this kind of payment; another card may do.';
const overLimit = 'The card has reached a limit that its issuer sets; another card may do.';
const tryLater = 'The card issuer could not be asked; the payment can be tried again later.';

/** Words for the codes of https://docs.stripe.com/declines/codes, and for other codes of a FREEZE. */
const words: Readonly<Record<string, string>> = {
  amount_too_large: 'The amount is more than the payment provider takes.',
  amount_too_small: 'The amount is less than the payment provider takes.',
  approve_with_id: unsaid,
  authentication_required:
    'The card issuer wants the buyer to confirm the payment, who cannot be asked here; another card may do.',
  card_not_supported: notForThis,
  card_velocity_exceeded: overLimit,
  currency_not_supported: 'The card cannot be charged in this currency; another card may do.',
  duplicate_transaction:
    'The same amount was charged to this card a moment ago; the buyer should look first.',
  expired_card: 'The card has expired; the buyer has to save another one.',
  incorrect_address: wrongDetails,
  incorrect_cvc: wrongDetails,
  incorrect_number: wrongDetails,
  incorrect_zip: wrongDetails,
  insufficient_funds: 'The card has not enough money or credit for the amount; another card may do.',
  invalid_account: unusable,
  invalid_amount: overLimit,
  invalid_cvc: wrongDetails,
  invalid_expiry_month: wrongDetails,
  invalid_expiry_year: wrongDetails,
  invalid_number: wrongDetails,
  issuer_not_available: tryLater,
  live_mode_test_card: 'The saved card is one for tests.',
  new_account_information_available: unusable,
  not_permitted: notForThis,
  payment_intent_authentication_failure:
    'The buyer did not confirm the payment to the card issuer; it can be tried again.',
  processing_error: tryLater,
  reenter_transaction: tryLater,
  resource_missing: unexplainedWords,
  service_not_allowed: notForThis,
  testmode_decline: 'The saved card is not one of the cards for tests.',
  transaction_not_allowed: notForThis,
  try_again_later: tryLater,
  withdrawal_count_limit_exceeded: overLimit,
};

function wordsFor(code: string, { type, decline_code }: StripeReason): string {
  const isOfCard = Boolean(decline_code) || type === 'card_error' || type === 'StripeCardError';
  return words[code] ?? (isOfCard ? unsaid : unexplainedWords);
}

/** How much of Stripe's message is kept, in characters. */
const messageMax = 300;

function detailOf(reason: StripeReason): string {
  const { type, code, decline_code, network_decline_code, param, message, requestId } = reason;
  const facts = { type, code, decline_code, network_decline_code, param, request: requestId };
  const known = Object.entries(facts).flatMap(([name, value]) => (value ? [`${name} ${value}`] : []));
  const sentence = message ? [withoutIds(message).slice(0, messageMax)] : [];
  return ['Stripe', ...known, ...sentence].join(', ');
}

/** Removes keys, client secrets, ids of customers and cards, addresses and long numbers from a message. */
function withoutIds(message: string): string {
  return message
    .replaceAll(/\b(sk|rk|pk|whsec|cus|pm|card|src|tok|seti|ba)_\w+/g, '$1_…')
    .replaceAll(/_secret_\w+/g, '_secret_…')
    .replaceAll(/\S+@\S+/g, '…')
    .replaceAll(/\d(?:[ -]?\d){7,}/g, '…');
}
