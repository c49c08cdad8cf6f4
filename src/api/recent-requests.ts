import type { Clock } from '../domain/clock.ts';
import type { Reason } from '../domain/reason.ts';
import type { Page, PageQuery } from '../store/paging.ts';
import type { Store } from '../store/store.ts';
import type { ListenerName, RequestEvent } from './call-observer.ts';

/** A call that ended. */
export interface RecentRequest {
  /** Counts all calls of the process, from 1. */
  readonly nth: number;
  readonly requestId: string;
  /** Unix milliseconds. */
  readonly endedAtMs: number;
  /** Without authentication, the owner of the claimed key; undefined if there is none. */
  readonly caller: string | undefined;
  readonly isAuthenticated: boolean;
  readonly listener: ListenerName;
  readonly operation: string | undefined;
  /** HTTP status; 0 if no response was sent. */
  readonly status: number;
  /** Undefined if the call succeeded. */
  readonly reason: Reason | undefined;
  readonly durationMs: number;
}

/** Selects calls; undefined members select all. */
export interface RequestFilter {
  readonly caller?: string | undefined;
  readonly requestId?: string | undefined;
  readonly listener?: ListenerName | undefined;
  /** Whether only calls that failed are selected. */
  readonly isFailed: boolean;
}

/** The most calls that are kept, and how many of them are left when there are more: to drop a thousand at once costs less. */
export const recentRequestsMax = { kept: 10_000, left: 9_000 } as const;

/** A call whose object is used again for a later one. */
type Entry = { -readonly [Member in keyof RecentRequest]: RecentRequest[Member] };

const newEntry = (): Entry => ({
  nth: 0,
  requestId: '',
  // Fractions, so that V8 gives these members a place for such numbers from the start.
  endedAtMs: 0.5,
  caller: undefined,
  isAuthenticated: false,
  listener: 'public',
  operation: undefined,
  status: 0,
  reason: undefined,
  durationMs: 0.5,
});

/** The last calls of all listeners, in memory only. */
export type RecentRequests = ReturnType<typeof createRecentRequests>;

/**
 * Keeps the last calls by caller, so that a caller with many calls drops its own first. Calls without authentication are apart, by
 * the owner of the key that they claim: anybody can send them.
 */
export function createRecentRequests(store: Pick<Store, 'findKey'>, clock: Pick<Clock, 'nowMs'>) {
  /** Oldest first. */
  const groups = new Map<string, Entry[]>();
  /**
   * Entries without a call, to be used again. New ones would outlive the young heap, which makes it large and its collection slow.
   * There is one more than calls are kept, because a call is added before others are dropped.
   */
  const free = Array.from({ length: recentRequestsMax.kept + 1 }, newEntry);
  let count = 0;

  /** Shortens the longest groups to the same length, so that `left` calls are left. */
  function drop(): void {
    const byLength = [...groups].toSorted(([, one], [, other]) => one.length - other.length);
    let left: number = recentRequestsMax.left;
    let groupsToCome = groups.size;
    for (const [name, requests] of byLength) {
      free.push(...requests.splice(0, requests.length - Math.floor(left / groupsToCome)));
      if (requests.length === 0) groups.delete(name);
      left -= requests.length;
      groupsToCome -= 1;
    }
  }

  return {
    /** Keeps a call that ended with this HTTP status, without what it sent. */
    add: (listener: ListenerName, event: RequestEvent, status: number, elapsedMs: number): void => {
      const { requestId, caller, claimedKey, operation, apiError } = event;
      const claimed = claimedKey === undefined ? undefined : store.findKey(claimedKey)?.caller;
      // No name begins with a control character.
      const group = caller ?? `\0${claimed ?? ''}`;
      const requests = groups.get(group) ?? [];
      if (requests.length === 0) groups.set(group, requests);
      count += 1;
      // Reading a character joins the pieces that an id is made of, which take five times the memory.
      requestId.charCodeAt(0);
      const entry = free.pop() ?? newEntry();
      entry.nth = count;
      entry.requestId = requestId;
      entry.endedAtMs = clock.nowMs();
      entry.caller = caller ?? claimed;
      entry.isAuthenticated = caller !== undefined;
      entry.listener = listener;
      entry.operation = operation;
      entry.status = status;
      entry.reason = apiError?.reason;
      entry.durationMs = Math.round(elapsedMs * 10) / 10;
      requests.push(entry);
      if (free.length === 0) drop();
    },
    /** Lists the selected calls, newest first. */
    list: ({ caller, requestId, listener, isFailed }: RequestFilter, { from, size }: PageQuery) => {
      const isSelected = (request: RecentRequest) =>
        request.nth <= (from ?? count) &&
        (caller === undefined || request.caller === caller) &&
        (requestId === undefined || request.requestId === requestId) &&
        (listener === undefined || request.listener === listener) &&
        (!isFailed || request.reason !== undefined);
      const found = [...groups.values()].flatMap((requests) => requests.filter(isSelected));
      found.sort((one, other) => other.nth - one.nth);
      const page: Page<RecentRequest> = {
        // Copies: an entry may be used again before the response is made.
        items: found.slice(0, size).map((request) => ({ ...request })),
        next: found[size]?.nth,
      };
      return page;
    },
  };
}
