import type { IncomingHttpHeaders } from 'node:http';
import { givenNetwork } from '../../lib/networks.ts';
import type { AnyRequest, AnyResponse } from './any-http.ts';

/**
 * What all calls of a process may hold together, in bytes: their requests, and what the kernel has not taken of their
 * responses.
 */
const heldBytesMax = 24 * 1_048_576;
/** The largest request body that a listener reads, in bytes. */
const bodyBytesMax = 65_536;
/**
 * What Node takes for a call over each HTTP version, and for each header beside its text, in bytes: about, and with the
 * garbage that is not collected yet.
 */
const overheadBytes = { http1: 4_096, http2: 32_768, header: 256 } as const;
/** How long a client may take nothing of a response, and how often that is checked, in milliseconds. */
const timeouts = { stalledMs: 20_000, checkEveryMs: 1_000 } as const;

/** With fewer callers and clients than this, those without calls are not forgotten. */
const holdersMin = 1_024;

/** Why a connection is closed: its client takes nothing, all calls hold too much, or it sends too many requests ahead. */
export type CutOffReason = 'stalled' | 'memory' | 'requests';

/** What a listener says of a connection. */
export interface ConnectionRules {
  /** Calls that may be open at the same time; with one more the connection is closed. */
  readonly callsMax: number;
  readonly listener: string;
  /** The address of the client of a call with these headers: the call counts for it while its caller is not known. */
  clientOf(headers: IncomingHttpHeaders): string | undefined;
  /** Closes the connection at once. */
  cutOff(reason: CutOffReason): void;
}

/** The open calls of a process, on all its listeners. */
export interface OpenCalls {
  /** Takes in a connection. */
  connect(rules: ConnectionRules): OpenConnection;
  /** How often a connection was closed for each reason; for the first, or a stream of HTTP/2 was reset. */
  cutOffs(): Readonly<Record<CutOffReason, number>>;
}

/**
 * A caller, or a client whose caller is not known, and what it holds. There is one for each name, and it stays for a while
 * when it has no calls.
 */
interface Holder {
  /** Its open calls: first the one of which something moved longest ago. */
  readonly calls: OpenCall[];
  /** What they hold, in bytes. */
  bytes: number;
}

/** What connections and calls count in. */
interface Ledger {
  holderOf(name: string): Holder;
  /** Counts bytes of a holder, more or, where negative, less. */
  count(holder: Holder, bytes: number): void;
  /** Closes connections until all calls hold no more than they may. */
  makeRoom(): void;
  /** Looks regularly whether clients take their responses, as long as some are not taken. */
  watch(): void;
  cutOff(connection: OpenConnection, reason: CutOffReason): void;
}

/** A response that knows the call that it answers. */
export type CountedAnyResponse = AnyResponse & { openCall: OpenCall | undefined };

/** A connection and its open calls: those whose responses have not left. */
export class OpenConnection {
  /** The oldest first. */
  readonly calls: OpenCall[] = [];
  readonly rules: ConnectionRules;
  /** When the client last took some of a response, or began to have some to take. */
  movedMs = 0;
  /** What the kernel has not taken of the responses, in bytes. */
  unsentBytes = 0;
  /** What is in memory for its calls, in bytes. */
  heldBytes = 0;
  readonly #ledger: Ledger;
  #isOver = false;
  #client: string | undefined;
  #unknownName: string;

  constructor(rules: ConnectionRules, ledger: Ledger) {
    this.rules = rules;
    this.#ledger = ledger;
    this.#unknownName = unknownAt(rules.listener, undefined);
  }

  /** Counts a call until its response has left. Undefined if the connection is closed, perhaps because of this call. */
  begin(request: AnyRequest, response: CountedAnyResponse): OpenCall | undefined {
    if (this.#isOver) return undefined;
    const client = this.rules.clientOf(request.headers);
    const call = new OpenCall(
      this,
      client,
      this.#ledger.holderOf(this.#nameOf(client)),
      response,
      this.#ledger,
    );
    this.calls.push(call);
    response.openCall = call;
    response.on('close', endCall);
    call.hold(bytesOf(request));
    if (this.calls.length > this.rules.callsMax) this.#ledger.cutOff(this, 'requests');
    return this.#isOver ? undefined : call;
  }

  /** Carries out a call: over HTTP/1.1 when the kernel has taken the responses to those before it. */
  carryOut(call: OpenCall, work: () => void): void {
    if (call === this.calls[0] || 'stream' in call.response) work();
    else call.work = work;
  }

  /** Ends a call, and carries out the one that waited for it. */
  endCall(call: OpenCall): void {
    if (!remove(this.calls, call)) return;
    call.end();
    const [next] = this.calls;
    const work = next?.work;
    if (next === undefined || work === undefined || next.response.req.socket.destroyed) return;
    next.work = undefined;
    work();
  }

  /** Forgets all calls: the connection is closed. */
  end(): void {
    this.#isOver = true;
    for (const call of this.calls.splice(0)) call.end();
  }

  /** The name of the holder of a call of this client while its caller is not known. */
  #nameOf(client: string | undefined): string {
    if (client !== this.#client) this.#unknownName = unknownAt(this.rules.listener, client);
    this.#client = client;
    return this.#unknownName;
  }
}

/** A call whose response has not left. */
export class OpenCall {
  readonly connection: OpenConnection;
  /** The address of its client. */
  readonly client: string | undefined;
  readonly response: AnyResponse;
  /** Carries it out, if it waits for the calls before it. */
  work: (() => void) | undefined;
  /** Why its connection was closed, or its stream reset, before its response had left. */
  cutOffReason: CutOffReason | undefined;
  isIdentified = false;
  /** When its client last took some of the response, or began to have some to take. */
  movedMs = 0;
  /** What the kernel has not taken of the response, in bytes. */
  unsentBytes = 0;
  readonly #ledger: Ledger;
  #holder: Holder;
  #heldBytes = 0;
  #isOver = false;

  constructor(
    connection: OpenConnection,
    client: string | undefined,
    holder: Holder,
    response: AnyResponse,
    ledger: Ledger,
  ) {
    this.connection = connection;
    this.client = client;
    this.response = response;
    this.#ledger = ledger;
    this.#holder = holder;
    holder.calls.push(this);
  }

  /** Counts it for its caller from now on. */
  identify(caller: string): void {
    this.isIdentified = true;
    if (!this.#isOver) this.#moveTo(this.#ledger.holderOf(caller));
  }

  /** Counts bytes that are in memory for it until it ends or they are released. */
  hold(bytes: number): void {
    if (this.#isOver) return;
    this.#count(bytes);
    this.#ledger.makeRoom();
  }

  /** Counts bytes of `hold` no more. */
  release(bytes: number): void {
    if (!this.#isOver) this.#count(-bytes);
  }

  /** Counts bytes of the response that wait for the kernel to take them. */
  send(bytes: number): void {
    if (this.#isOver) return;
    const nowMs = performance.now();
    if (this.unsentBytes === 0) this.movedMs = nowMs;
    if (this.connection.unsentBytes === 0) this.connection.movedMs = nowMs;
    this.unsentBytes += bytes;
    this.connection.unsentBytes += bytes;
    this.#ledger.watch();
    this.hold(bytes);
  }

  /** Counts bytes of `send` no more: the kernel has taken them. */
  sent(bytes: number): void {
    if (this.#isOver) return;
    this.movedMs = performance.now();
    this.connection.movedMs = this.movedMs;
    this.unsentBytes -= bytes;
    this.connection.unsentBytes -= bytes;
    this.release(bytes);
    this.#moveTo(this.#holder);
  }

  /** Counts nothing more. */
  end(): void {
    this.release(this.#heldBytes);
    this.connection.unsentBytes -= this.unsentBytes;
    this.#isOver = true;
    remove(this.#holder.calls, this);
  }

  /** Makes it the last call of a holder, which counts it from now on. */
  #moveTo(holder: Holder): void {
    remove(this.#holder.calls, this);
    this.#ledger.count(this.#holder, -this.#heldBytes);
    this.#holder = holder;
    this.#ledger.count(holder, this.#heldBytes);
    holder.calls.push(this);
  }

  #count(bytes: number): void {
    this.#heldBytes += bytes;
    this.connection.heldBytes += bytes;
    this.#ledger.count(this.#holder, bytes);
  }
}

/** Ends the call of a response that has left, or whose connection is closed. */
function endCall(this: CountedAnyResponse): void {
  this.openCall?.connection.endCall(this.openCall);
}

/**
 * Removes a call from a list; whether it was there. The lists are arrays, for a Set that changes with each call makes new tables
 * all the time, and each table points to the next. A table in the old heap would keep all later calls until that is collected.
 */
function remove(calls: OpenCall[], call: OpenCall): boolean {
  const place = calls.indexOf(call);
  if (place >= 0) calls.splice(place, 1);
  return place >= 0;
}

/**
 * Bounds what clients can hold of the memory of a process, whatever they send and however little they read.
 * - A connection is closed when its client has taken nothing of a response for `stalledMs`. Over HTTP/2 only the stream is
 *   reset if the client has taken some of others in the second half of that time, or another has nothing to take.
 * - When all calls hold too much, the caller who holds most loses the connection that holds most. Calls whose callers are not
 *   known count for their clients, at each listener; all addresses of a `givenNetwork` are one client. A client loses the
 *   connection on which nothing has moved for longest: if it lost the largest, others at its address could send no large
 *   request. Were new calls refused instead, a client could keep all others out.
 */
export function createOpenCalls(stalledMs: number = timeouts.stalledMs): OpenCalls {
  const holders = new Map<string, Holder>();
  /** When there are so many holders, those without calls are forgotten. */
  let holdersMax = holdersMin;
  const counts: Record<CutOffReason, number> = { stalled: 0, memory: 0, requests: 0 };
  let heldBytes = 0;
  let isWatching = false;

  function forgetIdle(): void {
    for (const [name, { calls }] of holders) if (calls.length === 0) holders.delete(name);
    holdersMax = Math.max(holdersMin, 2 * holders.size);
  }

  function largestHolder(): Holder | undefined {
    let largest: Holder | undefined;
    for (const holder of holders.values()) {
      if (holder.bytes > (largest?.bytes ?? 0)) largest = holder;
    }
    return largest;
  }

  /** The connection that a caller or client loses first. */
  function firstToGo(calls: readonly OpenCall[]): OpenConnection | undefined {
    if (calls[0]?.isIdentified === false) return calls[0].connection;
    let largest: OpenConnection | undefined;
    for (const { connection } of calls) {
      if (largest === undefined || connection.heldBytes > largest.heldBytes) largest = connection;
    }
    return largest;
  }

  const ledger: Ledger = {
    holderOf: (name) => {
      const known = holders.get(name);
      if (known !== undefined) return known;
      if (holders.size >= holdersMax) forgetIdle();
      const holder = { calls: [], bytes: 0 };
      holders.set(name, holder);
      return holder;
    },
    count: (holder, bytes) => {
      heldBytes += bytes;
      holder.bytes += bytes;
    },
    makeRoom: () => {
      while (heldBytes > heldBytesMax) {
        const connection = firstToGo(largestHolder()?.calls ?? []);
        if (connection === undefined) return;
        ledger.cutOff(connection, 'memory');
      }
    },
    watch: () => {
      if (isWatching) return;
      isWatching = true;
      setTimeout(cutOffStalled, Math.min(timeouts.checkEveryMs, stalledMs / 4)).unref();
    },
    cutOff: (connection, reason) => {
      counts[reason] += 1;
      for (const call of connection.calls) call.cutOffReason = reason;
      connection.end();
      connection.rules.cutOff(reason);
    },
  };

  function cutOffStalled(): void {
    const nowMs = performance.now();
    isWatching = false;
    const unsent = [...holders.values()].flatMap(({ calls }) =>
      calls.filter(({ unsentBytes }) => unsentBytes > 0),
    );
    if (unsent.length > 0) ledger.watch();
    for (const call of unsent) {
      if (call.movedMs > nowMs - stalledMs) continue;
      if ('stream' in call.response && isInUse(call.connection, nowMs - stalledMs / 2)) {
        counts.stalled += 1;
        call.cutOffReason = 'stalled';
        call.response.stream.destroy();
      } else if (call.connection.calls.includes(call)) ledger.cutOff(call.connection, 'stalled');
    }
  }

  return {
    connect: (rules) => new OpenConnection(rules, ledger),
    cutOffs: () => counts,
  };
}

/** Whether a client has taken some of a response since then, or has a call with nothing to take. */
function isInUse({ movedMs, calls }: OpenConnection, sinceMs: number): boolean {
  return movedMs > sinceMs || calls.some(({ unsentBytes }) => unsentBytes === 0);
}

/** The name of the holder of calls whose caller is not known. No caller has it: names have no control characters. */
const unknownAt = (listener: string, client: string | undefined): string =>
  `\0${listener} ${client === undefined ? '' : givenNetwork(client)}`;

/** What a request may take, with as much of a body as it announces, in bytes. */
function bytesOf({ httpVersionMajor, headers, rawHeaders }: AnyRequest): number {
  let bytes = httpVersionMajor === 1 ? overheadBytes.http1 : overheadBytes.http2;
  bytes += (rawHeaders.length / 2) * overheadBytes.header;
  for (const text of rawHeaders) bytes += text.length;
  if (headers['transfer-encoding'] !== undefined) return bytes + bodyBytesMax;
  const length = headers['content-length'];
  return length === undefined ? bytes : bytes + Math.min(Number(length), bodyBytesMax);
}
