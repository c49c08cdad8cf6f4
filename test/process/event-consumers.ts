import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { toJson } from '@bufbuild/protobuf';
import { ConnectError, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import type { WebhookEvent } from '../../clients/typescript/src/webhook.ts';
import { type Event, EventSchema, EventService } from '../../gen/artseal/v1/event_pb.ts';
import { ErrorInfoSchema } from '../../gen/google/rpc/error_details_pb.ts';
import type { IssuedPlatform } from '../support/issued.ts';
import { send } from '../support/signed-request.ts';
import { bearer, sending } from '../support/typed-clients.ts';
import type { WatchedService } from '../support/watched-command.ts';

/** An event as the feed has it. */
export type EventWithCaller = WebhookEvent['data'] & { readonly sequence: number };

/** A service that is killed and started again. */
export interface Reborn {
  /** The service that runs, or else the next one. */
  running(): Promise<WatchedService>;
}

/** The pause before the next call after the service was killed, in milliseconds. */
export const pauseMs = 20;

/** How long a poll waits for an event, in seconds. */
const waitSeconds = 1;

/** Reads the feed of a platform from its beginning until the signal, and continues at its cursor after each kill. */
export function poll(service: Reborn, platform: IssuedPlatform, signal: AbortSignal) {
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

/** Reads the whole feed of a platform, page by page. */
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

/** Watches the events of a platform, or of all, over gRPC until the signal, and continues after each kill; by platform. */
export function watchOver(service: Reborn, token: string, platform: string | undefined, signal: AbortSignal) {
  const events = new Map<string, EventWithCaller[]>();
  let after: bigint | undefined;
  async function watch(): Promise<void> {
    const { internalUrl: baseUrl } = await service.running();
    const transport = createGrpcTransport({ baseUrl, interceptors: [sending(bearer(token))] });
    const request = { ...(platform && { platform }), ...(after !== undefined && { after }) };
    for await (const { next, event, platform: by } of createClient(EventService, transport).watchEvents(
      request,
      { signal },
    )) {
      const isInOrder = after === undefined || next > after || event === undefined;
      assert.ok(isInOrder, `${next} came after ${after}`);
      if (event) {
        const own = events.get(by);
        if (own) own.push(plain(event));
        else events.set(by, [plain(event)]);
      }
      after = next;
    }
  }
  const gather = async () => {
    while (!signal.aborted) {
      try {
        await watch();
      } catch (error) {
        if (!(error instanceof ConnectError)) throw error;
        // An error of the service has a reason; a kill has none.
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
