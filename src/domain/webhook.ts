import { type EventType, eventTypes } from './event.ts';
import { checkText } from './text.ts';
import type { Violation } from './violation.ts';

/** The most endpoints that a caller may have. */
export const webhooksMax = 10;

/** An ENABLED endpoint is sent events. */
export const webhookStatuses = ['ENABLED', 'DISABLED'] as const;

/** The status of an endpoint. */
export type WebhookStatus = (typeof webhookStatuses)[number];

/**
 * PENDING: the next attempt has a time. WAITING: an earlier event of the same resource comes first. DELIVERED: an attempt
 * succeeded. FAILED: there is no further attempt.
 */
export const deliveryStatuses = ['PENDING', 'WAITING', 'DELIVERED', 'FAILED'] as const;

/** The status of an event at an endpoint. */
export type DeliveryStatus = (typeof deliveryStatuses)[number];

/** The delay after each failed attempt, in seconds. After the last there is no further attempt. */
export const retryDelaysS = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400] as const;

/** The most jitter, as a part of the delay: it keeps retries from coming all at once. */
export const retryJitter = 0.1;

/** The longest delay of an attempt, also with Retry-After, in seconds: a day, and jitter. */
const retryMaxS = 86_400 * (1 + retryJitter);

/** No delivery is due later than this from now, in milliseconds, unless the clock was set back. */
export const dueHorizonMs = 2 * 1_000 * retryMaxS;

/** An endpoint is disabled when all attempts have failed for this long, in seconds: five days. */
export const failingMaxS = 432_000;

/** The types of events that an endpoint is sent; undefined for all. */
export type EventFilter = readonly EventType[] | undefined;

/** Whether an endpoint with this filter is sent events of a type. */
export const isSent = (filter: EventFilter, type: EventType): boolean =>
  filter === undefined || filter.includes(type);

/** The types among these words, each once, in the order of `eventTypes`. */
export const typesIn = (words: readonly string[]): EventType[] =>
  eventTypes.filter((type) => words.includes(type));

/** The word for all types, future ones included. */
export const everyType = '*';

/** The most words for types. A word may be repeated. */
const typeWordsMax = 20;

/** Checks the words for the types that an endpoint is sent. An empty list is valid; what it means depends on the call. */
export function checkEventTypes(words: readonly string[]): Violation[] {
  const broken = (rule: string): Violation[] => [{ field: 'eventTypes', rule }];
  if (words.length > typeWordsMax) return broken(`must have at most ${typeWordsMax} items`);
  if (words.length === 1 && words[0] === everyType) return [];
  const isKnown = (word: string) => (eventTypes as readonly string[]).includes(word);
  return words.every(isKnown)
    ? []
    : broken(`must be of ${eventTypes.join(', ')}, or ${everyType} alone for all of them`);
}

/** The longest description of an endpoint, in code points. */
const descriptionMax = 200;

/** Checks the description of an endpoint. It may be empty. */
export const checkDescription = (description: string): Violation[] =>
  description === '' ? [] : checkText('description', description, { min: 0, max: descriptionMax });

/** How long the previous secret stays valid after a rotation, in seconds. */
export const secretOverlapS = { default: 86_400, min: 0, max: 604_800 } as const;

const urlSealEnd = '/url';

/** The id that the URL of an endpoint is encrypted for. The secret has another one, so that neither can replace the other. */
export const urlSealId = (webhookId: string): string => webhookId + urlSealEnd;

/** The endpoint whose URL is encrypted for an id; undefined if none is. */
export const webhookOfUrlSeal = (sealId: string): string | undefined =>
  sealId.endsWith(urlSealEnd) ? sealId.slice(0, -urlSealEnd.length) : undefined;
