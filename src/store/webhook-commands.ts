import type { Actor } from '../domain/audit-entry.ts';
import type { DeliveryStatus, EventFilter, WebhookStatus } from '../domain/webhook.ts';
import type { EventWithCaller } from './event-commands.ts';
import type { CallerRef } from './filing-commands.ts';
import type { Page, PageQuery } from './paging.ts';

/** An endpoint. */
export interface StoredWebhook extends CallerRef {
  /** Counts up. */
  readonly id: number;
  /** Public handle. */
  readonly webhookId: string;
  /** The origin of its URL. */
  readonly origin: string;
  /** Its URL, sealed by the key ring. */
  readonly sealedUrl: Uint8Array;
  readonly eventTypes: EventFilter;
  readonly description: string;
  readonly status: WebhookStatus;
  /** Why it is disabled, for its owner; null if it is not. */
  readonly disabledWhy: string | null;
  readonly createdAtS: number;
  /** Sealed by the key ring for `webhookId`. */
  readonly sealedSecret: Uint8Array;
  /** The secret before, likewise; null if there was none. It is good until `previousEndsAtS`. */
  readonly previousSecret: Uint8Array | null;
  /** When that ends, or ended, Unix seconds; null if there is none. */
  readonly previousEndsAtS: number | null;
  /** Since when each attempt failed, Unix seconds; null if the last one did not. */
  readonly failingSinceS: number | null;
}

/** A URL as the store keeps it: it can tell the origin, and nothing else of it. */
export interface SealedUrl {
  readonly origin: string;
  readonly sealedUrl: Uint8Array;
}

/** An endpoint to add. */
export type NewWebhook = SealedUrl &
  Pick<StoredWebhook, 'webhookId' | 'eventTypes' | 'description' | 'createdAtS' | 'sealedSecret'>;

/** What of an endpoint is to be changed; undefined is left as it is. */
export interface WebhookChange {
  readonly url?: SealedUrl | undefined;
  /** `ALL` for all types. */
  readonly eventTypes?: NonNullable<EventFilter> | 'ALL' | undefined;
  readonly description?: string | undefined;
  readonly status?: WebhookStatus | undefined;
}

/** Which endpoint: one of `owner`, or of anybody if that is undefined. */
export interface WebhookName {
  readonly webhookId: string;
  readonly owner: number | undefined;
}

/** What became of an event at an endpoint. */
export interface StoredDelivery {
  /** Whose event it is. */
  readonly callerId: number;
  /** Of the event, among those of its caller. */
  readonly sequence: number;
  readonly type: EventWithCaller['type'];
  readonly status: DeliveryStatus;
  /** How often it was sent. */
  readonly attempts: number;
  readonly lastAttemptAtMs: number | null;
  /** Null unless it is PENDING. */
  readonly nextAttemptAtMs: number | null;
  /** Of the last answer; null if none came. */
  readonly httpStatus: number | null;
  /** The first bytes of the last answer; null if none came. */
  readonly answer: Uint8Array | null;
  /** Why it did not arrive, for its owner; null if it did, or was not sent yet. */
  readonly error: string | null;
}

/** An endpoint as whoever sends needs it. */
export interface SendingWebhook extends StoredWebhook {
  /** When the first of its deliveries is due, Unix milliseconds; null if none is PENDING. */
  readonly nextDueAtMs: number | null;
}

/** An event to send, and how often it was sent. */
export interface DueDelivery {
  readonly event: EventWithCaller;
  readonly attempts: number;
}

/** What is to be sent to an endpoint. */
export interface WebhookWork {
  /** Undefined where the endpoint is gone or disabled, or its caller suspended: nothing is to be sent to it now. */
  readonly webhook: SendingWebhook | undefined;
  /** PENDING and due, the longest due first. No two are of one resource. */
  readonly due: readonly DueDelivery[];
  /** Whether more may be due. */
  readonly hasMore: boolean;
}

/** What came of one attempt. */
export interface DeliveryResult {
  readonly id: number;
  readonly sequence: number;
  /** How often the event was sent, this time included. */
  readonly attempts: number;
  /** When it ended, Unix milliseconds. */
  readonly atMs: number;
  readonly isDelivered: boolean;
  readonly httpStatus: number | null;
  readonly answer: Uint8Array | null;
  readonly error: string | null;
  /** When it is to be sent again, Unix milliseconds; null if it is not, being delivered or given up. */
  readonly retryAtMs: number | null;
  /** Why the endpoint is to be disabled, for its owner, whatever its failures before; undefined if it is not. */
  readonly disables?: string | undefined;
}

/** What attempts led to. Both are ids of endpoints. */
export interface NotedAttempts {
  readonly disabled: readonly number[];
  /** Where an event that waited is due. */
  readonly released: readonly number[];
}

/** Events of a caller behind one sequence, up to another. */
export interface EventRange {
  readonly after: number;
  readonly upTo: number;
}

/** Events that are looked at in one unit that sends again, at most: other units wait for it. */
export const redeliveredPerUnit = 100;

/** Deliveries that are deleted in one unit that deletes an endpoint, at most: likewise. */
export const deletedPerUnit = 200;

/** What the units of sending again came to so far. */
export interface Redelivered {
  /** How many are to be sent. */
  readonly count: number;
  /** What is still to be looked at; undefined if nothing is. */
  readonly rest: EventRange | undefined;
}

/** What came of testing an endpoint. */
export interface WebhookTestResult {
  readonly isDelivered: boolean;
  readonly httpStatus: number | null;
  readonly answer: Uint8Array | null;
  readonly error: string | null;
}

/** A test of an endpoint: to be made, or made. */
export interface WebhookTest {
  /** Of the event that is sent. */
  readonly eventId: string;
  /** The endpoint to send it to. */
  readonly webhook?: StoredWebhook;
  /** Undefined until it is known. */
  readonly result?: WebhookTestResult;
}

/** Endpoints of callers, and what is sent to them. */
export interface WebhookCommands {
  /** Adds an endpoint, which is sent what happens from then on. Refused with WEBHOOKS_EXHAUSTED. */
  AddWebhook: {
    readonly takes: { readonly owner: number; readonly webhook: NewWebhook };
    readonly gives: StoredWebhook;
  };
  /** Endpoints of `owner`, or of anybody if that is undefined, oldest first. */
  ListWebhooks: {
    readonly takes: { readonly owner: number | undefined; readonly page: PageQuery };
    readonly gives: Page<StoredWebhook>;
  };
  /** Refused with WEBHOOK_NOT_FOUND. */
  FindWebhook: { readonly takes: WebhookName; readonly gives: StoredWebhook };
  /**
   * Disabled, what is PENDING or WAITING has FAILED. Enabled, it begins behind the newest event. With a URL it has not failed
   * yet. An operator who does it is named by `by`, and leaves an act; of being disabled by one its owner is told by an event.
   * Refused with WEBHOOK_NOT_FOUND.
   */
  ChangeWebhook: {
    readonly takes: WebhookName & { readonly change: WebhookChange; readonly by?: Actor | undefined };
    readonly gives: StoredWebhook;
  };
  /** Finds the endpoint that a test is to be sent to. Refused with WEBHOOK_NOT_FOUND. */
  BeginWebhookTest: {
    readonly takes: WebhookName & { readonly eventId: string };
    readonly gives: WebhookTest;
  };
  /** Gives the result of a test, to be kept under the Idempotency-Key of its call. */
  EndWebhookTest: {
    readonly takes: { readonly eventId: string; readonly result: WebhookTestResult };
    readonly gives: WebhookTest;
  };
  /**
   * Gives it another secret; the one before is good until `previousEndsAtS`, and none before that any more. An operator who does it
   * is named by `by`, and leaves an act. Refused with WEBHOOK_NOT_FOUND.
   */
  RotateWebhookSecret: {
    readonly takes: WebhookName & {
      readonly sealedSecret: Uint8Array;
      readonly previousEndsAtS: number;
      readonly by?: Actor | undefined;
    };
    readonly gives: StoredWebhook;
  };
  /**
   * Deletes deliveries of it, `deletedPerUnit` at most, and itself with the last of them: until that is done it is to be asked again.
   * Refused with WEBHOOK_NOT_FOUND.
   */
  DeleteWebhook: {
    readonly takes: WebhookName & { readonly by?: Actor | undefined };
    readonly gives: { readonly isDone: boolean };
  };
  /** Newest event first; a page of those of one status may be short, and not the last. Refused with WEBHOOK_NOT_FOUND. */
  ListDeliveries: {
    readonly takes: WebhookName & { readonly status: DeliveryStatus | undefined; readonly page: PageQuery };
    readonly gives: Page<StoredDelivery>;
  };
  /**
   * Has one event sent again, or each that the endpoint is sent, was tried or passed over, and was not DELIVERED, of a time and
   * later or of a range: due at once, in the order of its resource, its attempts counted anew. Of a range it looks at
   * `redeliveredPerUnit` events at most, and its `count` includes the `counted` of the units before. Refused with WEBHOOK_NOT_FOUND, WEBHOOK_DISABLED, EVENTS_EXPIRED, and VALIDATION_FAILED for
   * a sequence ahead of all, or of a type that the endpoint is not sent.
   */
  Redeliver: {
    readonly takes: WebhookName & {
      readonly which: { readonly sequence: number } | { readonly sinceMs: number } | EventRange;
      readonly counted?: number;
      readonly nowMs: number;
      readonly by?: Actor | undefined;
    };
    readonly gives: Redelivered;
  };
  /** The endpoints that are ENABLED, of callers that are not suspended, in the order of their ids. */
  ListSending: { readonly takes: { readonly page: PageQuery }; readonly gives: Page<SendingWebhook> };
  /**
   * What is to be sent to an endpoint as of `nowMs`, `limit` at most: what is to be sent again, and then what happened since it was
   * last asked for, which is PENDING from now on, or WAITING for an earlier event of its resource. What is not kept any more has
   * FAILED. `underWay` are sequences that are being sent, which are left out.
   */
  ClaimDeliveries: {
    readonly takes: {
      readonly id: number;
      readonly nowMs: number;
      readonly limit: number;
      readonly underWay: readonly number[];
    };
    readonly gives: WebhookWork;
  };
  /**
   * Writes down what came of attempts; the same again changes nothing more. Where a delivery ends, the one that waits for it is
   * due. An endpoint all attempts at which failed for `failingMaxS` is disabled, with an event. What came of attempts at an
   * endpoint that is gone is dropped. Some deliveries whose events are not kept any more are deleted.
   */
  RecordAttempts: {
    readonly takes: { readonly outcomes: readonly DeliveryResult[] };
    readonly gives: NotedAttempts;
  };
}
