import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { givenNetwork } from '../../lib/networks.ts';

/** A request of either HTTP version. */
export type AnyRequest = IncomingMessage | Http2ServerRequest;
/** A response of either HTTP version. */
export type AnyResponse = ServerResponse | Http2ServerResponse;
/** A response with the call that it belongs to. */
export type CountedAnyResponse = AnyResponse & { openCall: OpenCall | undefined };

/** Whether a response was closed before all of it was sent. */
export function isBrokenOff(response: AnyResponse): boolean {
  return 'stream' in response ? response.stream.aborted : !response.writableFinished;
}

/** The largest request body that a listener reads, in bytes. */
export const bodyBytesMax = 65_536;
/** Memory for all open calls of the process, in bytes: requests, and response bytes that the kernel has not accepted. */
const heldBytesMax = 24 * 1_048_576;
/** Estimated memory that Node uses for a call of each HTTP version, and for a header besides its text, in bytes. */
const overheadBytes = { http1: 4_096, http2: 32_768, header: 256 } as const;
/** How long a client may read nothing of a response, and how often that is checked, in milliseconds. */
const timeouts = { stalledMs: 20_000, checkEveryMs: 1_000 } as const;

/** With fewer holders than this, those without calls are kept. */
const holdersMin = 1_024;

/** Why a connection is closed: its client reads nothing, all calls use too much memory, or it sends too many requests ahead. */
export type CutOffReason = 'stalled' | 'memory' | 'requests';

/** The limits and callbacks of a connection. */
export interface ConnectionRules {
  /** Open calls at the same time; with one more the connection is closed. */
  readonly callsMax: number;
  readonly listener: string;
  /** The client address of a call with these headers. The call counts for it until its caller is authenticated. */
  clientOf(headers: IncomingHttpHeaders): string | undefined;
  /** Closes the connection at once. */
  cutOff(reason: CutOffReason): void;
}

/** A caller, or a client that is not authenticated, and the memory of its calls. */
interface Holder {
  /** Open calls; the one without progress for longest is first. */
  readonly calls: OpenCall[];
  bytes: number;
}

/** A connection and its open calls. */
export class OpenConnection {
  /** The oldest first. */
  readonly calls: OpenCall[] = [];
  readonly rules: ConnectionRules;
  /** When the client last read some of a response, or the first unsent byte was written. */
  movedMs = 0;
  /** Response bytes that the kernel has not accepted. */
  unsentBytes = 0;
  heldBytes = 0;
  /** All open calls of the process. */
  readonly all: OpenCalls;
  #isOver = false;
  #client: string | undefined;
  #unknownName: string;

  constructor(rules: ConnectionRules, all: OpenCalls) {
    this.rules = rules;
    this.all = all;
    this.#unknownName = unknownAt(rules.listener, undefined);
  }

  /** Counts a call until its response is sent. Undefined if the connection is closed, perhaps because of this call. */
  begin(request: AnyRequest, response: CountedAnyResponse): OpenCall | undefined {
    if (this.#isOver) return undefined;
    const client = this.rules.clientOf(request.headers);
    const call = new OpenCall(this, client, this.all.holderOf(this.#nameOf(client)), response);
    this.calls.push(call);
    response.openCall = call;
    response.on('close', endCall);
    call.hold(bytesOf(request));
    if (this.calls.length > this.rules.callsMax) this.all.cutOff(this, 'requests');
    return this.#isOver ? undefined : call;
  }

  /** Runs a call: over HTTP/1.1 after the responses to the calls before it are sent. */
  carryOut(call: OpenCall, work: () => void): void {
    if (call === this.calls[0] || 'stream' in call.response) work();
    else call.work = work;
  }

  /** Ends a call, and runs the next one that waits. */
  endCall(call: OpenCall): void {
    if (!remove(this.calls, call)) return;
    call.end();
    const [next] = this.calls;
    const work = next?.work;
    if (next === undefined || work === undefined || next.response.req.socket.destroyed) return;
    next.work = undefined;
    work();
  }

  /** Ends all calls of a closed connection. */
  end(): void {
    this.#isOver = true;
    for (const call of this.calls.splice(0)) call.end();
  }

  /** The holder's name for calls of a client that are not authenticated. */
  #nameOf(client: string | undefined): string {
    if (client !== this.#client) this.#unknownName = unknownAt(this.rules.listener, client);
    this.#client = client;
    return this.#unknownName;
  }
}

/** A call whose response is not completely sent. */
export class OpenCall {
  readonly connection: OpenConnection;
  readonly client: string | undefined;
  readonly response: AnyResponse;
  /** Set while the call waits for the ones before it. */
  work: (() => void) | undefined;
  /** Why its connection was closed or its stream reset. */
  cutOffReason: CutOffReason | undefined;
  isIdentified = false;
  /** When its client last read some of the response, or the first unsent byte was written. */
  movedMs = 0;
  /** Response bytes that the kernel has not accepted. */
  unsentBytes = 0;
  readonly #all: OpenCalls;
  #holder: Holder;
  #heldBytes = 0;
  #isOver = false;

  constructor(connection: OpenConnection, client: string | undefined, holder: Holder, response: AnyResponse) {
    this.connection = connection;
    this.client = client;
    this.response = response;
    this.#all = connection.all;
    this.#holder = holder;
    holder.calls.push(this);
  }

  /** Counts the call for its authenticated caller from now on. */
  identify(caller: string): void {
    this.isIdentified = true;
    if (!this.#isOver) this.#moveTo(this.#all.holderOf(caller));
  }

  /** Counts bytes until the call ends or releases them. */
  hold(bytes: number): void {
    if (this.#isOver) return;
    this.#count(bytes);
    this.#all.makeRoom();
  }

  /** Removes bytes of `hold`. */
  release(bytes: number): void {
    if (!this.#isOver) this.#count(-bytes);
  }

  /** Counts response bytes until the kernel accepts them. */
  send(bytes: number): void {
    if (this.#isOver) return;
    const nowMs = performance.now();
    if (this.unsentBytes === 0) this.movedMs = nowMs;
    if (this.connection.unsentBytes === 0) this.connection.movedMs = nowMs;
    this.unsentBytes += bytes;
    this.connection.unsentBytes += bytes;
    this.#all.watch();
    this.hold(bytes);
  }

  /** Removes bytes of `send`: the kernel has accepted them. */
  sent(bytes: number): void {
    if (this.#isOver) return;
    this.movedMs = performance.now();
    this.connection.movedMs = this.movedMs;
    this.unsentBytes -= bytes;
    this.connection.unsentBytes -= bytes;
    this.release(bytes);
    this.#moveTo(this.#holder);
  }

  end(): void {
    this.release(this.#heldBytes);
    this.connection.unsentBytes -= this.unsentBytes;
    this.#isOver = true;
    remove(this.#holder.calls, this);
  }

  /** Moves the call to the end of a holder's list. */
  #moveTo(holder: Holder): void {
    remove(this.#holder.calls, this);
    this.#all.count(this.#holder, -this.#heldBytes);
    this.#holder = holder;
    this.#all.count(holder, this.#heldBytes);
    holder.calls.push(this);
  }

  #count(bytes: number): void {
    this.#heldBytes += bytes;
    this.connection.heldBytes += bytes;
    this.#all.count(this.#holder, bytes);
  }
}

/** Ends the call of a response that was sent, or whose connection is closed. */
function endCall(this: CountedAnyResponse): void {
  this.openCall?.connection.endCall(this.openCall);
}

/**
 * Removes a call from a list; returns whether it was there. The lists are arrays: the old tables of a changing Set point to its
 * new ones, and one of them in the old heap would keep all later calls in memory.
 */
function remove(calls: OpenCall[], call: OpenCall): boolean {
  const index = calls.indexOf(call);
  if (index >= 0) calls.splice(index, 1);
  return index >= 0;
}

/**
 * The open calls of a process, on all its listeners. Limits the memory that clients can use, whatever they send and however
 * slowly they read.
 * - A connection is closed when its client reads nothing of a response for `stalledMs`. Over HTTP/2 only the stream is reset
 *   if the client reads others.
 * - Above `heldBytesMax` the caller with most memory loses its largest connection. Calls that are not authenticated count for
 *   their client, a `givenNetwork`, which loses the connection without progress for longest: otherwise no other client at its
 *   address could send a large request. Rejecting new calls instead would let one client lock out all others.
 */
export class OpenCalls {
  /** How often connections were closed for each reason; `stalled` also counts HTTP/2 streams that were reset. */
  readonly cutOffs: Record<CutOffReason, number> = { stalled: 0, memory: 0, requests: 0 };
  readonly #stalledMs: number;
  readonly #holders = new Map<string, Holder>();
  /** With more holders than this, those without calls are forgotten. */
  #holdersMax = holdersMin;
  #heldBytes = 0;
  #isWatching = false;

  constructor(stalledMs: number = timeouts.stalledMs) {
    this.#stalledMs = stalledMs;
  }

  /** Adds a connection. */
  connect(rules: ConnectionRules): OpenConnection {
    return new OpenConnection(rules, this);
  }

  holderOf(name: string): Holder {
    const known = this.#holders.get(name);
    if (known !== undefined) return known;
    if (this.#holders.size >= this.#holdersMax) this.#forgetIdle();
    const holder = { calls: [], bytes: 0 };
    this.#holders.set(name, holder);
    return holder;
  }

  #forgetIdle(): void {
    for (const [name, { calls }] of this.#holders) if (calls.length === 0) this.#holders.delete(name);
    this.#holdersMax = Math.max(holdersMin, 2 * this.#holders.size);
  }

  /** Adds bytes to a holder; a negative number removes them. */
  count(holder: Holder, bytes: number): void {
    this.#heldBytes += bytes;
    holder.bytes += bytes;
  }

  /** Closes connections until the calls are within `heldBytesMax`. */
  makeRoom(): void {
    while (this.#heldBytes > heldBytesMax) {
      const connection = firstToGo(this.#largestHolder()?.calls ?? []);
      if (connection === undefined) return;
      this.cutOff(connection, 'memory');
    }
  }

  #largestHolder(): Holder | undefined {
    let largest: Holder | undefined;
    for (const holder of this.#holders.values()) {
      if (holder.bytes > (largest?.bytes ?? 0)) largest = holder;
    }
    return largest;
  }

  cutOff(connection: OpenConnection, reason: CutOffReason): void {
    this.cutOffs[reason] += 1;
    for (const call of connection.calls) call.cutOffReason = reason;
    connection.end();
    connection.rules.cutOff(reason);
  }

  /** Checks regularly for clients that read nothing, while there are unsent responses. */
  watch(): void {
    if (this.#isWatching) return;
    this.#isWatching = true;
    setTimeout(() => this.#cutOffStalled(), Math.min(timeouts.checkEveryMs, this.#stalledMs / 4)).unref();
  }

  #cutOffStalled(): void {
    const sinceMs = performance.now() - this.#stalledMs;
    this.#isWatching = false;
    const unsent = Array.from(this.#holders.values()).flatMap(({ calls }) =>
      calls.filter(({ unsentBytes }) => unsentBytes > 0),
    );
    if (unsent.length > 0) this.watch();
    for (const call of unsent) {
      if (call.movedMs > sinceMs) continue;
      if ('stream' in call.response && isInUse(call.connection, sinceMs + this.#stalledMs / 2)) {
        this.cutOffs.stalled += 1;
        call.cutOffReason = 'stalled';
        call.response.stream.destroy();
      } else if (call.connection.calls.includes(call)) this.cutOff(call.connection, 'stalled');
    }
  }
}

/** The connection that a holder of these calls loses. */
function firstToGo(calls: readonly OpenCall[]): OpenConnection | undefined {
  if (calls[0]?.isIdentified === false) return calls[0].connection;
  let largest: OpenConnection | undefined;
  for (const { connection } of calls) {
    if (largest === undefined || connection.heldBytes > largest.heldBytes) largest = connection;
  }
  return largest;
}

/** Whether a client has read some of a response since then, or has a call with nothing to read. */
function isInUse({ movedMs, calls }: OpenConnection, sinceMs: number): boolean {
  return movedMs > sinceMs || calls.some(({ unsentBytes }) => unsentBytes === 0);
}

/** The holder's name for calls that are not authenticated. No caller has it: names have no control characters. */
const unknownAt = (listener: string, client: string | undefined): string =>
  `\0${listener} ${client === undefined ? '' : givenNetwork(client)}`;

/** Memory for a request and its announced body, in bytes. */
function bytesOf({ httpVersionMajor, headers, rawHeaders }: AnyRequest): number {
  let bytes = httpVersionMajor === 1 ? overheadBytes.http1 : overheadBytes.http2;
  bytes += (rawHeaders.length / 2) * overheadBytes.header;
  for (const text of rawHeaders) bytes += text.length;
  if (headers['transfer-encoding'] !== undefined) return bytes + bodyBytesMax;
  const length = headers['content-length'];
  return length === undefined ? bytes : bytes + Math.min(Number(length), bodyBytesMax);
}
