import type { EscrowState } from '../src/domain/escrow.ts';
import type { Reason } from '../src/domain/reason.ts';
import { consumesNonce } from './admissions.ts';
import { entryOf } from './books.ts';
import { type Caller, type Platform, sign } from './callers.ts';
import type { Dice } from './dice.ts';
import { ConnectionLost, type Instance } from './instance.ts';
import { odds, worldLimits } from './limits.ts';
import type { Answer } from './listener.ts';
import type { Request } from './requests.ts';
import { must } from './violation.ts';
import { sleep, type World } from './world.ts';

/** The response to a request, or LOST if there is none. */
export type Outcome = Answer | 'LOST';

/** Sends requests, and records what the responses promise. */
export interface Client {
  /** Sends a request once. An error other than these is a Violation. */
  send(who: Caller, request: Request, refusals: readonly Reason[], key?: string): Promise<Outcome>;
  /** Sends a request, and repeats it until its result is known. */
  insist(who: Caller, request: Request, refusals: readonly Reason[], key?: string): Promise<Outcome>;
  /** A response had an order. */
  sawOrder(order: ShownOrder): void;
  /** A response to the opening of an order came, under a key if there is one. */
  sawOpening(outcome: Outcome, key: string | undefined): void;
}

/** An order in a response. */
export interface ShownOrder {
  readonly escrowId: string;
  readonly state: EscrowState;
  readonly history: readonly { readonly state: EscrowState; readonly payment?: string }[];
}

/** What a client needs. */
export interface ClientOptions {
  readonly world: World;
  /** What the trace calls it. */
  readonly name: string;
  readonly dice: Dice;
  /** The current life. Throws ConnectionLost if there is none. */
  readonly instance: () => Instance;
}

/** The longest that a client waits until it tries again, in simulated milliseconds. */
const retryMaxMs = 15_000;
/** Reasons that leave the result of a request open. */
const unknown: readonly string[] = ['UNAVAILABLE', 'IDEMPOTENCY_IN_PROGRESS', 'PAYMENT_PENDING'];
/** Reasons for a repeated call of an eavesdropper. */
const ofReplay: readonly string[] = ['NONCE_REUSED', 'RATE_LIMITED', 'UNAVAILABLE'];
const escrowIdPattern = /ES-\d{4}-[0-9A-Z]{4}/;

export function createClient({ world, name, dice, instance }: ClientOptions): Client {
  const { trace, witness, tally } = world;
  let nonces = 0;

  async function send(
    who: Caller,
    request: Request,
    refusals: readonly string[],
    key?: string,
  ): Promise<Outcome> {
    const what = `${request.method.name} ${request.subject} by ${who.caller}${key ? ` under ${key}` : ''}`;
    if (who.kind === 'platform') return sendSigned(who, request, what, refusals, key);
    return exchange(what, refusals, () => instance().listener.identified(request, key, who));
  }

  /** Sends a request with a new nonce, and repeats some unchanged, as an eavesdropper would. */
  async function sendSigned(
    who: Platform,
    request: Request,
    what: string,
    refusals: readonly string[],
    key?: string,
  ): Promise<Outcome> {
    nonces += 1;
    const nonce = `${name}-nonce-${nonces}`;
    const credentials = sign(who, request, world.clock.nowMs(), nonce);
    const attempt = () => instance().listener.signed(request, key, credentials);
    witness.sent({ session: name, platform: who, nonce, key, request });
    const outcome = await exchange(what, refusals, attempt);
    if (outcome === 'LOST') return outcome;
    witness.answered(nonce, outcome);
    if (consumesNonce(outcome) && dice.oneIn(odds.replay)) {
      await sleep(world, dice.upTo(retryMaxMs));
      const again = await exchange(`${what} again with ${nonce}`, ofReplay, attempt);
      must(again === 'LOST' || again.status !== 200, name, `${nonce} was taken twice`);
    }
    return outcome;
  }

  async function exchange(
    what: string,
    refusals: readonly string[],
    attempt: () => Promise<Answer>,
  ): Promise<Outcome> {
    trace.note(name, `-> ${what}`);
    tally.count('calls');
    try {
      const answer = await attempt();
      const { status, json } = answer;
      trace.note(name, `<- ${what}: ${status} ${json.code ?? json.state ?? json.escrow?.state ?? ''}`);
      tally.count(`answer ${json.code ?? status}`);
      must(status === 200 || refusals.includes(json.code), name, `${what} got ${JSON.stringify(json)}`);
      return answer;
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error;
      trace.note(name, `<- ${what}: ${error.message}`);
      tally.count('answer lost');
      return 'LOST';
    }
  }

  async function insist(
    who: Caller,
    request: Request,
    refusals: readonly string[],
    key?: string,
  ): Promise<Outcome> {
    for (let tries = 1; ; tries += 1) {
      const outcome = await send(who, request, refusals, key);
      const isKnown = outcome !== 'LOST' && !unknown.includes(outcome.json.code);
      if (isKnown || tries === worldLimits.triesMax) return outcome;
      await sleep(world, dice.upTo(retryMaxMs));
    }
  }

  return {
    send,
    insist,
    sawOrder: ({ escrowId, state, history }) => {
      const entries = history.map(entryOf);
      trace.alias(name, escrowId);
      const isLast = history.at(-1)?.state === state;
      must(isLast, escrowId, `it was shown as ${state} with the history ${entries}`);
      witness.saw(escrowId, state);
      witness.shown(escrowId, entries);
    },
    sawOpening: (outcome, key) => {
      if (outcome === 'LOST') return;
      const { status, json } = outcome;
      const escrowId: string | undefined = json.escrowId ?? escrowIdPattern.exec(json.message)?.[0];
      if (escrowId === undefined || json.code === 'ESCROW_ACTIVE') return;
      trace.alias(name, escrowId);
      if (status === 200) witness.saw(escrowId, json.state);
      if (json.code === 'PAYMENT_DECLINED') witness.saw(escrowId, 'CLOSED');
      if (key !== undefined) witness.keyed(key, escrowId);
    },
  };
}
