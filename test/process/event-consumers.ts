import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { toJson } from '@bufbuild/protobuf';
import { ConnectError, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { type Event, EventSchema, EventService } from '../../gen/artseal/v1/event_pb.ts';
import { ErrorInfoSchema } from '../../gen/google/rpc/error_details_pb.ts';
import type { WebhookEvent } from '../../src/client/index.ts';
import type { ServeProcess } from '../support/command.ts';
import type { IssuedPlatform } from '../support/issued.ts';
import { send } from '../support/signed-request.ts';
import { bearer, sending } from '../support/typed-clients.ts';

/** An event as the feed tells it. */
export type EventWithCaller = WebhookEvent['data'] & { readonly sequence: number };

/** A service that is killed and started again. */
export interface Reborn {
  /** The one that runs, or, where none does, the next one. */
  running(): Promise<ServeProcess>;
}

/** How long whoever lost the service waits before it asks again, in milliseconds. */
export const pauseMs = 20;

/** How long a poll waits for an event, in seconds. */
const waitSeconds = 1;

/** Events in the order in which they came, for as long as they are gathered. */
export interface Gathering {
  readonly events: readonly EventWithCaller[];
  /** Resolves once nothing more is gathered. */
  readonly ended: Promise<void>;
}

/** Reads the feed of a platform from its beginning; after each death of the service it goes on where it was. */
export function poll(service: Reborn, platform: IssuedPlatform, signal: AbortSignal): Gathering {
  const events: EventWithCaller[] = [];
  let after = 0;
  async function ask(): Promise<void> {
    const { publicUrl } = await service.running();
    const target = `/api/v1/events?after=${after}&waitSeconds=${waitSeconds}`;
    const answer = await send(publicUrl, platform, { target }).catch(() => undefined);
    if (answer === undefined) {
      await delay(pauseMs);
      return;
    }
    assert.equal(answer.status, 200, answer.text);
    events.push(...answer.json.events);
    after = answer.json.next;
  }
  const gather = async () => {
    while (!signal.aborted) await ask();
  };
  return { events, ended: gather() };
}

/** All that is behind a place of a platform's feed, page by page. */
export async function readFeed(publicUrl: string, platform: IssuedPlatform): Promise<EventWithCaller[]> {
  const events: EventWithCaller[] = [];
  for (;;) {
    const target = `/api/v1/events?after=${events.at(-1)?.sequence ?? 0}`;
    const { status, text, json } = await send(publicUrl, platform, { target });
    assert.equal(status, 200, text);
    if (json.events.length === 0) return events;
    events.push(...json.events);
  }
}

/** What a stream tells, by the platform that it is about. */
export interface Watching {
  readonly events: ReadonlyMap<string, readonly EventWithCaller[]>;
  readonly ended: Promise<void>;
}

/** Watches the events of a platform, or of all, over gRPC from the beginning; goes on likewise. */
export function watchOver(
  service: Reborn,
  token: string,
  platform: string | undefined,
  signal: AbortSignal,
): Watching {
  const events = new Map<string, EventWithCaller[]>();
  let after: bigint | undefined;
  async function watch(): Promise<void> {
    const { internalUrl: baseUrl } = await service.running();
    const transport = createGrpcTransport({ baseUrl, interceptors: [sending(bearer(token))] });
    const asked = { ...(platform && { platform }), ...(after !== undefined && { after }) };
    for await (const told of createClient(EventService, transport).watchEvents(asked, { signal })) {
      const isBehind = after === undefined || told.next > after || told.event === undefined;
      assert.ok(isBehind, `${told.next} was told behind ${after}`);
      if (told.event) {
        const own = events.get(told.platform);
        if (own) own.push(plain(told.event));
        else events.set(told.platform, [plain(told.event)]);
      }
      after = told.next;
    }
  }
  const gather = async () => {
    while (!signal.aborted) {
      try {
        await watch();
      } catch (error) {
        if (!(error instanceof ConnectError)) throw error;
        // What the service itself refuses bears its reason; a death has none.
        assert.deepEqual(error.findDetails(ErrorInfoSchema), [], error.message);
        await delay(pauseMs);
      }
    }
  };
  return { events, ended: gather() };
}

/** The message of an event as the feed has it. */
function plain(event: Event): EventWithCaller {
  return { ...(toJson(EventSchema, event) as object as EventWithCaller), sequence: Number(event.sequence) };
}
