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

/** The response to a request, or LOST if the connection was lost. */
export type Outcome = Answer | 'LOST';

/** Sends requests, and records their responses for the checks. */
export type Client = ReturnType<typeof createClient>;

/** An order in a response. */
interface ShownOrder {
  readonly escrowId: string;
  readonly state: EscrowState;
  readonly history: readonly { readonly state: EscrowState; readonly payment?: string }[];
}

interface ClientOptions {
  readonly world: World;
  /** Its name in the trace. */
  readonly name: string;
  readonly dice: Dice;
  /** The instance of the service with a number. Throws ConnectionLost if it is down. */
  readonly instance: (number: number) => Instance;
}

/** The longest wait before a retry, in simulated milliseconds. */
const retryMaxMs = 15_000;
/** Error codes after which the result of a request is unknown. */
const inconclusive: readonly string[] = ['UNAVAILABLE', 'IDEMPOTENCY_IN_PROGRESS', 'PAYMENT_PENDING'];
/** The possible error codes of a replayed call. */
const ofReplays: readonly string[] = ['NONCE_REUSED', 'RATE_LIMITED', 'UNAVAILABLE'];
/** The numbers of instances are drawn from so many. */
const numbersMax = 1_000_000;
const escrowIdPattern = /ES-\d{4}-[0-9A-Z]{4}/;

export function createClient({ world, name, dice, instance }: ClientOptions) {
  const { trace, witness, tally } = world;
  const drawn = dice.fork('instances');
  const anyNumber = () => drawn.below(numbersMax);
  let nonces = 0;

  async function send(
    who: Caller,
    request: Request,
    expected: readonly Reason[],
    key?: string,
    number = anyNumber(),
  ): Promise<Outcome> {
    const what = `${request.method.name} ${request.subject} by ${who.caller}${key ? ` under ${key}` : ''}`;
    if (who.kind === 'platform') return sendSigned(who, request, number, what, expected, key);
    return exchange(what, expected, () => instance(number).listener.identified(request, key, who));
  }

  /** Sends a request with a new nonce. Replays some unchanged, as an attacker would. */
  async function sendSigned(
    who: Platform,
    request: Request,
    number: number,
    what: string,
    expected: readonly string[],
    key?: string,
  ): Promise<Outcome> {
    nonces += 1;
    const nonce = `${name}-nonce-${nonces}`;
    const credentials = sign(who, request, world.clock.nowMs(), nonce);
    const callAt = (at: number) => instance(at).listener.signed(request, key, credentials);
    witness.sent({ session: name, platform: who, nonce, key, request });
    const outcome = await exchange(what, expected, () => callAt(number));
    if (outcome === 'LOST') return outcome;
    witness.answered(nonce, outcome);
    if (consumesNonce(outcome) && dice.oneIn(odds.replay)) {
      await sleep(world, dice.upTo(retryMaxMs));
      const replay = () => callAt(anyNumber());
      const again = await exchange(`${what} replayed with ${nonce}`, ofReplays, replay);
      must(again === 'LOST' || again.status !== 200, name, `the nonce ${nonce} was accepted twice`);
    }
    return outcome;
  }

  async function exchange(
    what: string,
    expected: readonly string[],
    call: () => Promise<Answer>,
  ): Promise<Outcome> {
    trace.note(name, `-> ${what}`);
    tally.count('calls');
    try {
      const answer = await call();
      const { status, json } = answer;
      trace.note(name, `<- ${what}: ${status} ${json.code ?? json.state ?? json.escrow?.state ?? ''}`);
      tally.count(`answer ${json.code ?? status}`);
      must(status === 200 || expected.includes(json.code), name, `${what} got ${JSON.stringify(json)}`);
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
    expected: readonly Reason[],
    key?: string,
    number = anyNumber(),
  ): Promise<Outcome> {
    for (let tries = 1; ; tries += 1) {
      const first = tries === 1 ? number : anyNumber();
      const numbers = world.sendsTwice ? [first, first + 1] : [first];
      const sent = numbers.map((one) => send(who, request, expected, key, one));
      const [outcome = 'LOST'] = await Promise.all(sent);
      const isKnown = outcome !== 'LOST' && !inconclusive.includes(outcome.json.code);
      if (isKnown || tries === worldLimits.triesMax) return outcome;
      await sleep(world, dice.upTo(retryMaxMs));
    }
  }

  return {
    /** Draws the number of an instance. The one with the next number is another one, if there are several. */
    anyNumber,
    /** Sends a request once, to any instance by default. Throws a Violation for an error that is not in `expected`. */
    send,
    /** Sends a request, and retries it at any instance until its result is known or it has been sent `triesMax` times. */
    insist,
    /** Records an order in a response. */
    sawOrder: ({ escrowId, state, history }: ShownOrder) => {
      const entries = history.map(entryOf);
      trace.alias(name, escrowId);
      const isLast = history.at(-1)?.state === state;
      must(isLast, escrowId, `a response has the state ${state} and the history ${entries}`);
      witness.saw(escrowId, state);
      witness.shown(escrowId, entries);
    },
    /** Records the response to an OpenEscrow call, with its idempotency key if it has one. */
    sawOpening: (outcome: Outcome, key: string | undefined) => {
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
