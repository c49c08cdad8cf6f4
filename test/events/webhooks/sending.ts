import type { TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { webhookMessage } from '../../../src/api/services/event-service.ts';
import { createCalendar } from '../../../src/domain/calendar.ts';
import type { Attempt, WebhookMessage } from '../../../src/events/webhooks/attempt.ts';
import { type SendingLimits, sendingLimits } from '../../../src/events/webhooks/limits.ts';
import { Sender } from '../../../src/events/webhooks/sender.ts';
import { createKeyRing } from '../../../src/keys/key-ring.ts';
import { sealUrl } from '../../../src/keys/sealed-secrets.ts';
import { createLog } from '../../../src/lib/log.ts';
import type { StoredKey } from '../../../src/store/caller-commands.ts';
import type { EventWithCaller } from '../../../src/store/event-commands.ts';
import { type Command, type Execute, executorOf, type Store } from '../../../src/store/store.ts';
import type { NewWebhook, StoredWebhook } from '../../../src/store/webhook-commands.ts';
import { sqliteInThisThread } from '../../store/engines.ts';
import { addWebhook, crashCopy, noon, openStore } from '../../store/promises/fixtures.ts';
import { createManualClock, type ManualClock } from '../../support/clock.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

/** How long a condition may take, in real time. */
const timeoutMs = 60_000;

/** Seals the secrets of endpoints. */
export const keyRing = createKeyRing([{ name: 'main', key: new Uint8Array(32).fill(7) }]);

/** The secret of all endpoints. */
export const secret = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;

/** The message of an event. */
export const messageOf = (event: EventWithCaller): WebhookMessage =>
  webhookMessage(event, { idKey: new Uint8Array(32), timestamp: createCalendar('UTC').timestamp });

/** Adds an endpoint whose secret and URL open. */
export function addEndpoint(
  store: Store,
  by: StoredKey,
  { url, ...over }: Partial<NewWebhook> & { readonly url?: string } = {},
): Promise<StoredWebhook> {
  const webhookId = over.webhookId ?? `wh_${Math.random().toString(16).slice(2)}`;
  const sealed = url === undefined ? {} : sealUrl(keyRing, webhookId, url);
  return addWebhook(store, by, {
    ...{ webhookId, sealedSecret: keyRing.seal(secret, webhookId) },
    ...{ ...sealed, ...over },
  });
}

/** A sender on a store, with a simulated clock. */
export interface Sending {
  readonly store: Store;
  readonly clock: ManualClock;
  readonly sender: Sender;
  /** The log lines. */
  readonly log: readonly Readonly<Record<string, unknown>>[];
  /** Advances the clock from timer to timer, while no attempt is in flight, until the condition holds; with `atOnce` only waits. */
  until(isSo: () => boolean | Promise<boolean>, atOnce?: 'atOnce'): Promise<void>;
  /** Advances the clock by `ms`. */
  pass(ms: number): Promise<void>;
  /** Kills the sender and starts another on the store as it is on disk, with the same clock. */
  killed(attempt?: Attempt): Promise<Sending>;
}

/** Options of `startSending`. */
export interface SendingOptions {
  readonly attempt: Attempt;
  readonly message?: typeof messageOf;
  readonly limits?: Partial<SendingLimits>;
  readonly random?: () => number;
  /** By default those of the store. */
  readonly requestsInFlight?: () => number;
  /** Executes a command in place of the store. */
  readonly around?: (command: Command, execute: Execute) => Promise<unknown>;
  readonly clock?: ManualClock;
  readonly dataDir?: string;
  /** The store of another sender, in place of an own one. */
  readonly store?: Store;
  /** By default always. */
  readonly leads?: () => boolean;
}

/** Few timers, so that days pass quickly. */
const rarely = { listEveryMs: 86_400_000, timerMaxMs: 86_400_000 };

type Scope = Pick<TestContext, 'after'>;

/** Opens a store and starts to send. */
export async function startSending(test: Scope, options: SendingOptions): Promise<Sending> {
  const { random = () => 0, around = (command, execute) => execute(command) } = options;
  const { clock = createManualClock(noon.atMs), dataDir = temporaryFolder(test) } = options;
  const store = options.store ?? (await openStore(test, sqliteInThisThread, dataDir));
  let isKilled = false;
  let commands = 0;
  let attempts = 0;
  const never = new Promise<never>(() => {});
  /** Nothing returns after a kill. */
  const counted = async <T>(result: Promise<T>, count: (by: 1 | -1) => void): Promise<T> => {
    count(1);
    try {
      return await result;
    } finally {
      count(-1);
      if (isKilled) await never;
    }
  };
  const through = (async (command: Command) => around(command, executorOf(store))) as Execute;
  const execute: Execute = (command) =>
    isKilled
      ? never
      : counted(through(command), (by) => {
          commands += by;
        });
  const attempt: Attempt = (...request) =>
    counted(options.attempt(...request), (by) => {
      attempts += by;
    });
  const log: Record<string, unknown>[] = [];
  const sender = new Sender({
    ...{ execute, attempt, random, message: options.message ?? messageOf },
    leads: options.leads ?? (() => true),
    requestsInFlight: options.requestsInFlight ?? store.requestsInFlight,
    onEvents: (listener) => store.onEvents((callerIds) => isKilled || listener(callerIds)),
    clock: { ...clock, after: (ms, callback) => clock.after(ms, () => isKilled || callback()) },
    log: createLog({ write: (line: string) => log.push(JSON.parse(line)) }),
    limits: { ...sendingLimits, ...rarely, ...options.limits },
  });
  test.after(() => {
    isKilled = true;
  });
  await sender.start();

  /** Waits for the store while no time passes. */
  async function settle(): Promise<void> {
    for (let turns = 0; turns < 3 || commands > 0; turns += 1) await turn();
  }

  async function until(isSo: () => boolean | Promise<boolean>, atOnce?: 'atOnce'): Promise<void> {
    const failAtMs = performance.now() + timeoutMs;
    for (;;) {
      await settle();
      if (await isSo()) return;
      if (performance.now() > failAtMs) throw new Error(`the condition does not hold within ${timeoutMs} ms`);
      if (attempts === 0 && atOnce === undefined) clock.advance(clock.nextDueMs() ?? 0);
    }
  }

  return {
    ...{ store, clock, sender, log, until },
    pass: async (ms) => {
      const untilMs = clock.monotonicMs() + ms;
      await until(() => {
        const leftMs = untilMs - clock.monotonicMs();
        if (leftMs > 0 && attempts === 0 && (clock.nextDueMs() ?? leftMs) >= leftMs) clock.advance(leftMs);
        return clock.monotonicMs() >= untilMs;
      });
    },
    killed: (next = options.attempt) => {
      const copy = crashCopy(test, dataDir);
      isKilled = true;
      return startSending(test, { ...options, attempt: next, clock, dataDir: copy });
    },
  };
}
