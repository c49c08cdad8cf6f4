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
  /** Its URL, encrypted by the key ring. */
  readonly sealedUrl: Uint8Array;
  readonly eventTypes: EventFilter;
  readonly description: string;
  readonly status: WebhookStatus;
  /** The reason why it is disabled, shown to its owner; null if it is enabled. */
  readonly disabledReason: string | null;
  readonly createdAtS: number;
  /** Encrypted by the key ring for `webhookId`. */
  readonly sealedSecret: Uint8Array;
  /** The previous secret, likewise, valid until `previousEndsAtS`; null if there was none. */
  readonly previousSecret: Uint8Array | null;
  /** Unix seconds; null if there is no previous secret. */
  readonly previousEndsAtS: number | null;
  /** When the current run of failed attempts began, Unix seconds; null if the last attempt succeeded. */
  readonly failingSinceS: number | null;
}

/** A URL as stored: its origin is readable, the rest is encrypted. */
export interface SealedUrl {
  readonly origin: string;
  readonly sealedUrl: Uint8Array;
}

/** An endpoint to add. */
export type NewWebhook = SealedUrl &
  Pick<StoredWebhook, 'webhookId' | 'eventTypes' | 'description' | 'createdAtS' | 'sealedSecret'>;

/** Changes to an endpoint; undefined leaves a member as it is. */
export interface WebhookChange {
  readonly url?: SealedUrl | undefined;
  /** `ALL` for all types. */
  readonly eventTypes?: NonNullable<EventFilter> | 'ALL' | undefined;
  readonly description?: string | undefined;
  readonly status?: WebhookStatus | undefined;
}

/** Names an endpoint of `owner`, or of any caller if that is undefined. */
export interface WebhookName {
  readonly webhookId: string;
  readonly owner: number | undefined;
}

/** Who changes an endpoint of another caller. The change is in the audit log. */
export interface WebhookOperator extends Actor {
  /** The internal system that makes the call. Its changes to its own endpoints are not audited. Undefined for an operator. */
  readonly callerId?: number | undefined;
}

/** What the last attempt to send an event met. */
export interface AttemptAnswer {
  /** Of the response; null if there was none. */
  readonly httpStatus: number | null;
  /** The first bytes of the response; null if there was none. */
  readonly answer: Uint8Array | null;
  /** Why the attempt failed, for the owner; null if it succeeded or none was made. */
  readonly error: string | null;
}

/** The delivery of an event to an endpoint. */
export interface StoredDelivery extends AttemptAnswer {
  /** The caller that the event belongs to. */
  readonly callerId: number;
  /** The sequence of the event, counted per caller. */
  readonly sequence: number;
  readonly type: EventWithCaller['type'];
  readonly status: DeliveryStatus;
  /** How often it was sent. */
  readonly attempts: number;
  readonly lastAttemptAtMs: number | null;
  /** Null unless it is PENDING. */
  readonly nextAttemptAtMs: number | null;
}

/** An endpoint and when it has something to send. */
export interface SendingWebhook extends StoredWebhook {
  /** When the first of its deliveries is due, Unix milliseconds; null if none is PENDING. */
  readonly nextDueAtMs: number | null;
}

/** An event to send, and the attempts so far. */
export interface DueDelivery {
  readonly event: EventWithCaller;
  readonly attempts: number;
}

/** The deliveries to make to an endpoint now. */
export interface WebhookWork {
  /** Undefined if nothing may be sent: the endpoint is deleted or disabled, or its caller is suspended. */
  readonly webhook: SendingWebhook | undefined;
  /** PENDING and due, oldest due time first. At most one per resource. */
  readonly due: readonly DueDelivery[];
  /** Whether more may be due. */
  readonly hasMore: boolean;
}

/** The result of an attempt, also of a test. */
export interface WebhookTestResult extends AttemptAnswer {
  /** Whether the endpoint answered 2xx in time. */
  readonly isDelivered: boolean;
}

/** The result of one attempt at a delivery. */
export interface DeliveryResult extends WebhookTestResult {
  readonly id: number;
  readonly sequence: number;
  /** Attempts so far, including this one. */
  readonly attempts: number;
  /** When it ended, Unix milliseconds. */
  readonly atMs: number;
  /** When to send it again, Unix milliseconds; null if it was delivered or given up. */
  readonly retryAtMs: number | null;
  /** Disables the endpoint at once, with this reason for its owner; undefined to leave it. */
  readonly disables?: string | undefined;
}

/** Endpoint ids that recorded attempts affected. */
export interface RecordedAttempts {
  readonly disabled: readonly number[];
  /** Endpoints where a WAITING event became due. */
  readonly released: readonly number[];
}

/** Events of a caller whose sequence is greater than `after` and at most `upTo`. */
export interface EventRange {
  readonly after: number;
  readonly upTo: number;
}

/** Events that one Redeliver looks at, at most. Other requests wait for it. */
export const redeliveredPerRequest = 100;

/** Deliveries that one DeleteWebhook deletes, at most. Other requests wait for it. */
export const deletedPerRequest = 200;

/** Progress of a redelivery. */
export interface Redelivered {
  /** Events to send so far. */
  readonly count: number;
  /** The range for the next Redeliver; undefined when done. */
  readonly rest: EventRange | undefined;
}

/** A test delivery, to be made or made. */
export interface WebhookTest {
  /** The id of the event that is sent. */
  readonly eventId: string;
  /** The endpoint to send it to. */
  readonly webhook?: StoredWebhook;
  /** Undefined until it is known. */
  readonly result?: WebhookTestResult;
}

/** Webhook endpoints and their deliveries. */
export interface WebhookCommands {
  /** Adds an endpoint. It is sent the events that happen from then on. Fails with WEBHOOKS_EXHAUSTED. */
  AddWebhook(command: { readonly owner: number; readonly webhook: NewWebhook }): StoredWebhook;
  /** Lists the endpoints of `owner`, or of all callers if that is undefined, oldest first. */
  ListWebhooks(command: {
    readonly owner: number | undefined;
    /** Only those with this status; undefined for all. */
    readonly status?: WebhookStatus | undefined;
    /** Only ENABLED ones whose last attempt failed. */
    readonly isFailing?: boolean;
    readonly page: PageQuery;
  }): Page<StoredWebhook>;
  /** Fails with WEBHOOK_NOT_FOUND. */
  FindWebhook(command: WebhookName): StoredWebhook;
  /**
   * Changes an endpoint. Disabling it sets PENDING and WAITING deliveries to FAILED. Enabling it starts after the newest
   * event. A new URL resets its failures. If an operator disables it, the owner gets an event. Fails with WEBHOOK_NOT_FOUND.
   */
  ChangeWebhook(
    command: WebhookName & {
      readonly change: WebhookChange;
      readonly by?: WebhookOperator | undefined;
    },
  ): StoredWebhook;
  /** Finds the endpoint to test. Fails with WEBHOOK_NOT_FOUND. */
  BeginWebhookTest(command: WebhookName & { readonly eventId: string }): WebhookTest;
  /** Returns the result of a test, so that it is stored under the Idempotency-Key of the call. */
  EndWebhookTest(command: { readonly eventId: string; readonly result: WebhookTestResult }): WebhookTest;
  /**
   * Replaces the secret. The previous one is valid until `previousEndsAtS`, earlier ones are not. Fails with WEBHOOK_NOT_FOUND.
   */
  RotateWebhookSecret(
    command: WebhookName & {
      readonly sealedSecret: Uint8Array;
      readonly previousEndsAtS: number;
      readonly by?: WebhookOperator | undefined;
    },
  ): StoredWebhook;
  /**
   * Deletes up to `deletedPerRequest` deliveries of an endpoint, and the endpoint with the last of them. Repeat it until
   * `isDone`. Fails with WEBHOOK_NOT_FOUND.
   */
  DeleteWebhook(command: WebhookName & { readonly by?: WebhookOperator | undefined }): {
    readonly isDone: boolean;
  };
  /** Newest event first; a page of those of one status may be short, and not the last. Refused with WEBHOOK_NOT_FOUND. */
  ListDeliveries(
    command: WebhookName & { readonly status: DeliveryStatus | undefined; readonly page: PageQuery },
  ): Page<StoredDelivery>;
  /**
   * Schedules one event again, or all events since a time or in a range that the endpoint subscribes to, that were tried or
   * skipped, and that are not DELIVERED. They are due at once, in order per resource, with their attempts reset. One request
   * looks at up to `redeliveredPerRequest` events; `count` includes `counted`, the count of earlier requests. Fails with
   * WEBHOOK_NOT_FOUND, WEBHOOK_DISABLED, EVENTS_EXPIRED, and with VALIDATION_FAILED for a sequence after the newest event or
   * of a type that the endpoint does not subscribe to.
   */
  Redeliver(
    command: WebhookName & {
      readonly which: { readonly sequence: number } | { readonly sinceMs: number } | EventRange;
      readonly counted?: number;
      readonly nowMs: number;
      readonly by?: WebhookOperator | undefined;
    },
  ): Redelivered;
  /** Lists the ENABLED endpoints of active callers, by id. */
  ListSending(command: { readonly page: PageQuery }): Page<SendingWebhook>;
  /**
   * Returns up to `limit` deliveries that are due at `nowMs`: retries first, then events since the last claim. The latter become
   * PENDING, or WAITING if an earlier event of their resource is open. A delivery whose event has expired becomes FAILED.
   * `underWay` lists sequences that are being sent; they are left out.
   */
  ClaimDeliveries(command: {
    readonly id: number;
    readonly nowMs: number;
    readonly limit: number;
    readonly underWay: readonly number[];
  }): WebhookWork;
  /**
   * Records the results of attempts; idempotent. A failed attempt changes nothing if a later one was recorded. When a delivery ends,
   * the next one of its resource becomes due. An endpoint whose attempts have all failed for `failingMaxS` is disabled, with an event.
   * Results for a deleted endpoint are ignored.
   * Also deletes some deliveries whose events have expired.
   */
  RecordAttempts(command: { readonly outcomes: readonly DeliveryResult[] }): RecordedAttempts;
}
