import { type EventType, eventTypes } from './event.ts';
import { ApiError } from './reason.ts';
import { checkText } from './text.ts';
import { ValidationError, type Violation } from './violation.ts';

/** Endpoints that a caller may have. */
export const webhooksMax = 10;

/** Whether an endpoint is sent anything. */
export const webhookStatuses = ['ENABLED', 'DISABLED'] as const;

/** One of them. */
export type WebhookStatus = (typeof webhookStatuses)[number];

/**
 * What became of an event at an endpoint: it is to be sent (again) at a time; it waits for an earlier event of the same resource
 * to arrive or to fail; it arrived; it is not sent any more.
 */
export const deliveryStatuses = ['PENDING', 'WAITING', 'DELIVERED', 'FAILED'] as const;

/** One of them. */
export type DeliveryStatus = (typeof deliveryStatuses)[number];

/** How long after each failed attempt the next one is made, in seconds; behind the last there is none. */
export const retryDelaysS = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400] as const;

/** How much later than that an attempt may be made at most, as a part of the delay, so that not all come at once. */
export const retryJitter = 0.1;

/** How long after a failed attempt the next one is made at the latest, whatever the endpoint asks for, in seconds: a day, and jitter. */
const retryMaxS = 86_400 * (1 + retryJitter);

/** What is due later than this from now, in milliseconds, was put off by a clock that has been set back: nothing waits for so long. */
export const dueHorizonMs = 2 * 1_000 * retryMaxS;

/** For how long all attempts at an endpoint have to fail before it is disabled, in seconds: five days. */
export const failingMaxS = 432_000;

/** Types that an endpoint is sent; undefined for all. */
export type EventFilter = readonly EventType[] | undefined;

/** Whether an endpoint is sent events of a type. */
export const isSent = (filter: EventFilter, type: EventType): boolean =>
  filter === undefined || filter.includes(type);

/** The types among these words, each once and in their order. */
export const typesIn = (words: readonly string[]): EventType[] =>
  eventTypes.filter((type) => words.includes(type));

/** The word that stands for all types, those that are yet to be made included. */
export const everyType = '*';

/** Words that name types, at most: more than there are types, since one may be repeated. */
const typeWordsMax = 20;

/** Checks words that name the types that an endpoint is sent; none stand for whatever the call says. */
export function checkEventTypes(words: readonly string[]): Violation[] {
  const refuse = (rule: string): Violation[] => [{ field: 'eventTypes', rule }];
  if (words.length > typeWordsMax) return refuse(`must have at most ${typeWordsMax} items`);
  if (words.length === 1 && words[0] === everyType) return [];
  const isKnown = (word: string) => (eventTypes as readonly string[]).includes(word);
  return words.every(isKnown)
    ? []
    : refuse(`must be of ${eventTypes.join(', ')}, or ${everyType} alone for all of them`);
}

/** The longest description of an endpoint, in code points. */
const descriptionMax = 200;

/** Checks what people are told of an endpoint; it may be empty. */
export const checkDescription = (description: string): Violation[] =>
  description === '' ? [] : checkText('description', description, { min: 0, max: descriptionMax });

/** How long the secret before may be good behind a rotation, in seconds. */
export const secretOverlapS = { default: 86_400, max: 604_800 } as const;

/** Checks how long the secret before is to be good. */
export function checkSecretOverlap(seconds: number): Violation[] {
  const { max } = secretOverlapS;
  if (seconds >= 0 && seconds <= max) return [];
  return [{ field: 'overlapSeconds', rule: `must be 0 to ${max}` }];
}

const urlSealEnd = '/url';

/** The id that the URL of an endpoint is sealed for. It is not that of its secret, which cannot take its place. */
export const urlSealId = (webhookId: string): string => webhookId + urlSealEnd;

/** The id of the endpoint whose URL is sealed for an id; undefined if no URL is. */
export const webhookOfUrlSeal = (sealId: string): string | undefined =>
  sealId.endsWith(urlSealEnd) ? sealId.slice(0, -urlSealEnd.length) : undefined;

/** The error for an id that names no endpoint that the caller may see. */
export const webhookNotFound = (): ApiError =>
  new ValidationError('WEBHOOK_NOT_FOUND', [{ field: 'webhookId', rule: 'names no webhook.' }]);

/** The error of one endpoint more than a caller may have. */
export const webhooksExhausted = (): ApiError =>
  new ApiError('WEBHOOKS_EXHAUSTED', `A caller has ${webhooksMax} webhooks at most: delete one first.`);

/** The error of what a disabled endpoint is not sent. */
export const webhookDisabled = (): ApiError =>
  new ApiError('WEBHOOK_DISABLED', 'The webhook is disabled: enable it first.');

/** The error of sending an event of a type that the endpoint is not sent. */
export const typeNotSent = (type: EventType): ApiError =>
  new ValidationError('VALIDATION_FAILED', [
    { field: 'sequence', rule: `is of a ${type}, which the webhook is not sent` },
  ]);

/** The error of sending an event that there is none of yet: `newest` is the sequence of the newest. */
export const eventNotTold = (newest: number): ApiError =>
  new ValidationError('VALIDATION_FAILED', [
    { field: 'sequence', rule: `must not be above ${newest}, that of the newest event` },
  ]);

/** The error of sending an event that is not kept any more. */
export const eventNotKept = (): ApiError =>
  new ValidationError('EVENTS_EXPIRED', [
    { field: 'sequence', rule: 'is of an event that is not kept any more: events are for 30 days' },
  ]);

/** The error of sending what happened since a time of which not all is kept. */
export const timeNotKept = (): ApiError =>
  new ValidationError('EVENTS_EXPIRED', [
    { field: 'since', rule: 'must not be more than 30 days ago: events are kept no longer' },
  ]);
