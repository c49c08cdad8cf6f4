import { checkText, type TextBounds } from './text.ts';
import { fieldError, type Violation } from './violation.ts';

/** Bounds of the texts of a pre-registration, in code points. */
export const registrationBounds = {
  name: { min: 1, max: 128 },
  intendedUse: { min: 1, max: 1_000 },
} as const satisfies Record<string, TextBounds>;

/** The longest e-mail address (RFC 5321, 4.5.3.1). */
export const emailMax = 254;

/** The longest part of an address before its @. */
const localPartMax = 64;

/** Pre-registrations that the form may add. Operators can add more. */
export const formRegistrationsMax = 5_000;

/**
 * How often the form can be sent: a burst, and then once every `everyMs` milliseconds; from one network of clients, and from all. A
 * network is counted for `burst * everyMs` at most, so the total also bounds how many are counted at the same time.
 */
export const formRates = {
  network: { burst: 10, everyMs: 360_000 },
  total: { burst: 100, everyMs: 6_000 },
} as const;

/** The lifetime of a one-time link to an API key, in seconds. */
export const accessLinkLifeS = { min: 60, max: 2_592_000, default: 604_800 } as const;

/** The longest text of a mail server that is kept, in UTF-16 units. */
export const noticeDetailMax = 300;

/**
 * States of a notice that was begun. SENDING: an attempt is under way. UNKNOWN: an attempt broke off, and the mail server may have
 * accepted the mail. BOUNCED: the mail server rejected it for good, or sent it back. No state leads to a second mail.
 */
export const noticeStates = ['SENDING', 'SENT', 'UNKNOWN', 'BOUNCED'] as const;

/** See `noticeStates`. */
export type NoticeState = (typeof noticeStates)[number];

/** Dot-atoms of RFC 5322 before the @. A quoted local part is rejected: hardly anybody has one, and it can hold anything. */
const localPart = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
/** At least two labels. Names in other scripts have their xn-- form. */
const domainName =
  /^([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/;

/** Whether a text is an e-mail address in the plain form of RFC 5321, in ASCII. It cannot break a header of a mail. */
export function isEmail(text: string): boolean {
  const [local = '', domain = '', ...more] = text.split('@');
  const isShort = text.length <= emailMax && local.length <= localPartMax;
  return isShort && more.length === 0 && localPart.test(local) && domainName.test(domain);
}

/** Checks an e-mail address. */
export function checkEmail(field: string, text: string): Violation[] {
  const rule = `must be an e-mail address such as name@example.com, of at most ${emailMax} characters`;
  if (text === '') return [{ field, rule: `is required: an e-mail address such as name@example.com` }];
  return isEmail(text) ? [] : [{ field, rule }];
}

/** What a person or an operator enters. */
export interface RegistrationTexts {
  readonly email: string;
  readonly name: string;
  readonly intendedUse: string;
}

/** Checks the texts of a pre-registration. */
export function checkRegistration({ email, name, intendedUse }: RegistrationTexts): Violation[] {
  return [
    ...checkEmail('email', email),
    ...checkText('name', name, registrationBounds.name),
    ...checkText('intendedUse', intendedUse, registrationBounds.intendedUse),
  ];
}

/** The form in which addresses are compared: two that differ only in case belong to one person. */
export const emailKey = (email: string): string => email.trim().toLowerCase();

/** The error of an id that no pre-registration has. */
export const registrationNotFound = () => fieldError('NOT_FOUND', 'registrationId', 'names no registration.');

/** The error of a registration that cannot be changed while its notice is sent, or after that run was killed. */
export const noticeIsSending = () =>
  fieldError(
    'VALIDATION_FAILED',
    'registrationId',
    'names a registration whose notice is being sent; if that run was killed, send the notices again: it becomes UNKNOWN',
  );

/** A text of a mail server as it is kept: on one line, and not longer than `noticeDetailMax`. */
export function noticeDetail(text: string): string {
  const line = text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim();
  return line.length > noticeDetailMax ? `${line.slice(0, noticeDetailMax - 1).toWellFormed()}…` : line;
}
