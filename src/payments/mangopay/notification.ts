import { createHash, timingSafeEqual } from 'node:crypto';
import { ApiError } from '../../domain/reason.ts';
import type { Notification, SentNotification } from '../provider.ts';

/** The form of ids at Mangopay. */
const idPattern = /^[A-Za-z0-9_-]{1,128}$/;
const eventPattern = /^[A-Z0-9_]{1,64}$/;

/**
 * Reads a hook. Mangopay does not sign hooks: the secret in the URL proves them. It repeats them for long with their old date,
 * so none is too old. It does not number them: kind, resource and time identify an event. Throws SIGNATURE_INVALID,
 * INVALID_JSON.
 */
export function readHook({ query }: SentNotification, secret: string): Notification {
  // Mangopay does not document how it extends a URL that has a query. Ids and secrets contain no question mark.
  const params = new URLSearchParams(query.replaceAll('?', '&'));
  const [given = '', ...more] = params.getAll('secret');
  if (more.length > 0 || !isSame(given, secret)) {
    throw new ApiError('SIGNATURE_INVALID', 'The query must have the secret of the hooks.');
  }
  const eventType = one(params, 'EventType', eventPattern);
  // Mangopay spells it like this.
  const id = one(params, 'RessourceId', idPattern);
  const date = one(params, 'Date', /^\d{1,12}$/);
  return { eventId: `${eventType} ${id} ${date}`, about: subjectOf(eventType, id) };
}

function subjectOf(eventType: string, id: string): Notification['about'] {
  if (eventType.startsWith('TRANSFER_NORMAL_')) return { reference: id };
  if (eventType.startsWith('TRANSFER_REFUND_')) return { resource: `/refunds/${id}` };
  const isDispute = eventType.startsWith('DISPUTE_') && !eventType.startsWith('DISPUTE_DOCUMENT_');
  return isDispute ? { resource: `/disputes/${id}` } : undefined;
}

function one(params: URLSearchParams, name: string, pattern: RegExp): string {
  const [value = '', ...more] = params.getAll(name);
  if (more.length > 0 || !pattern.test(value)) {
    throw new ApiError('INVALID_JSON', `The notification has no ${name} of the known form.`);
  }
  return value;
}

/** Compares in constant time, whatever the lengths. */
function isSame(given: string, secret: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(secret));
}
