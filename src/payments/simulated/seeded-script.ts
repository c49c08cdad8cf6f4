import type { InstructionFault, LookUpFault, NotificationFault, Script } from './faults.ts';

/** The longest delay of a fault, in milliseconds, where the rates do not say. */
const delayMaxFallbackMs = 10_000;

/** What a person has to end cannot be drawn. */
type Rates<Fault extends { readonly kind: string }> = Readonly<
  Partial<Record<Exclude<Fault['kind'], 'NONE' | 'KEPT_BACK'>, number>>
>;

type Shares = Readonly<Partial<Record<string, number>>>;

/** How often each fault happens: shares of all messages of the kind, from 0 to 1, together at most 1. */
export interface FaultRates {
  readonly instruction?: Rates<InstructionFault>;
  readonly lookUp?: Rates<LookUpFault>;
  readonly notification?: Rates<NotificationFault>;
  /** The longest delay of a fault that has one, in milliseconds. */
  readonly delayMaxMs?: number;
}

/** Draws faults from a seed: the same ones for the same sequence of messages. */
export function seededScript(seed: number, rates: FaultRates): Script {
  const draw = createDraws(seed);
  const { delayMaxMs = delayMaxFallbackMs } = rates;
  // Three draws a message, needed or not, so that each message has its own whatever the rates are.
  const fault = (shares: Shares = {}) => ({
    kind: pick(shares, draw()),
    ms: 1 + Math.floor(draw() * delayMaxMs),
    carriedOut: draw() < 1 / 2,
  });
  return {
    instruction: () => fault(rates.instruction) as InstructionFault,
    lookUp: () => fault(rates.lookUp) as LookUpFault,
    notification: () => fault(rates.notification) as NotificationFault,
  };
}

function pick(shares: Shares, drawn: number): string {
  let below = 0;
  for (const [kind, share = 0] of Object.entries(shares)) {
    below += share;
    if (drawn < below) return kind;
  }
  return 'NONE';
}

/** Numbers from 0 to below 1 that a seed determines: mulberry32. */
function createDraws(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
