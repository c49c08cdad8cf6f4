import { createHash, timingSafeEqual } from 'node:crypto';
import { ApiError } from '../../domain/reason.ts';
import type { Notification, SentNotification } from '../provider.ts';

/** An id that Mangopay could have given; it is asked for it. */
const idPattern = /^[A-Za-z0-9_-]{1,128}$/;
const eventPattern = /^[A-Z0-9_]{1,64}$/;

/**
 * Reads a hook. Mangopay signs none: what proves it is the secret in its URL, once and compared in constant time. Hooks are
 * repeated for long with their old date, so none is too old. Mangopay does not number them either: kind, resource and time
 * are what tells events apart, and one that comes again is the same. Throws SIGNATURE_INVALID, INVALID_JSON.
 */
export function readHook({ query }: SentNotification, secret: string): Notification {
  // Mangopay does not say how it adds to a URL that has a query; neither an id nor a secret has a question mark.
  const params = new URLSearchParams(query.replaceAll('?', '&'));
  const [given = '', ...more] = params.getAll('secret');
  if (more.length > 0 || !isSame(given, secret)) {
    throw new ApiError('SIGNATURE_INVALID', 'The query must have the secret of the hooks.');
  }
  const eventType = one(params, 'EventType', eventPattern);
  // As Mangopay spells it.
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

/** In constant time, whatever the lengths. */
function isSame(given: string, secret: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(secret));
}
