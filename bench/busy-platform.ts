import { setTimeout as delay } from 'node:timers/promises';
import { respondToParent } from './children.ts';
import { type Calls, openCalls } from './signed-calls.ts';

/** The one call that the busy platform makes again and again. */
export interface BusyWork {
  readonly port: number | undefined;
  readonly platform: Parameters<Calls['drain']>[0];
  readonly method: string;
  readonly target: string;
  readonly content?: object;
  /** So often, whatever the answers take; or one after the other, so many under way. */
  readonly pace: { readonly perS: number } | { readonly underWay: number };
}

/** What the process is asked for. */
export type BusyOrder = ({ readonly kind: 'begin' } & BusyWork) | { readonly kind: 'end' };

/** How many answers had each status. */
export interface BusyOutcome {
  readonly answered: readonly (readonly [status: number, count: number])[];
}

let answered = new Map<number, number>();
let end = async () => {};

function begin({ port, platform, method, target, content, pace }: BusyWork): void {
  const calls = openCalls(port);
  answered = new Map();
  const call = async () => {
    const status = await calls.drain(platform, method, target, content);
    answered.set(status, (answered.get(status) ?? 0) + 1);
    return status;
  };
  const stop = 'perS' in pace ? paced(call, pace.perS) : repeated(call, pace.underWay);
  end = async () => {
    await stop();
    calls.end();
  };
}

/** Calls at a steady rate, whatever the answers take. */
function paced(call: () => Promise<number>, perS: number): () => Promise<unknown> {
  const underWay: Promise<unknown>[] = [];
  const timer = setInterval(() => underWay.push(call()), 1_000 / perS);
  return () => {
    clearInterval(timer);
    return Promise.all(underWay);
  };
}

/** Calls one after the other, some at a time. */
function repeated(call: () => Promise<number>, underWay: number): () => Promise<unknown> {
  let isStopped = false;
  async function repeat(): Promise<void> {
    while (!isStopped) if ((await call()) === 429) await delay(100);
  }
  const all = Promise.all(Array.from({ length: underWay }, repeat));
  return () => {
    isStopped = true;
    return all;
  };
}

async function carryOut(order: BusyOrder): Promise<object> {
  if (order.kind === 'begin') begin(order);
  else await end();
  return { answered: [...answered] };
}

respondToParent(carryOut);
