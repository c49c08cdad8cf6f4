import type { IncomingHttpHeaders } from 'node:http';
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

/** What connections and calls count in. */
interface Ledger {
  count(holder: string, bytes: number): void;
  /** Closes connections until all calls hold no more than they may. */
  makeRoom(): void;
  /** Puts a call behind all others, for it began or its client took some of its response. */
  putLast(call: OpenCall): void;
  remove(call: OpenCall): void;
  /** Looks regularly whether clients take their responses, as long as some are not taken. */
  watch(): void;
  cutOff(connection: OpenConnection, reason: CutOffReason): void;
}

/** A connection and its open calls: those whose responses have not left. */
export class OpenConnection {
  /** The oldest first. */
  readonly calls = new Set<OpenCall>();
  readonly rules: ConnectionRules;
  /** When the client last took some of a response, or began to have some to take. */
  movedMs = 0;
  /** What the kernel has not taken of the responses, in bytes. */
  unsentBytes = 0;
  /** What is in memory for its calls, in bytes. */
  heldBytes = 0;
  readonly #ledger: Ledger;
  #isOver = false;
  #address: string | undefined;
  #holder: string;

  constructor(rules: ConnectionRules, ledger: Ledger) {
    this.rules = rules;
    this.#ledger = ledger;
    this.#holder = unknownAt(rules.listener, undefined);
  }

  /** What a call with these headers counts for while its caller is not known. */
  unknownHolder(headers: IncomingHttpHeaders): string {
    const address = this.rules.clientOf(headers);
    if (address !== this.#address) this.#holder = unknownAt(this.rules.listener, address);
    this.#address = address;
    return this.#holder;
  }

  /** Counts a call until its response has left. Undefined if the connection is closed, perhaps because of this call. */
  begin(request: AnyRequest, response: AnyResponse): OpenCall | undefined {
    if (this.#isOver) return undefined;
    const call = new OpenCall(this, request, response, this.#ledger);
    this.calls.add(call);
    this.#ledger.putLast(call);
    if ('openCall' in response) response.openCall = call;
    response.once('close', () => this.#endCall(call));
    call.hold(bytesOf(request));
    if (this.calls.size > this.rules.callsMax) this.#ledger.cutOff(this, 'requests');
    return this.#isOver ? undefined : call;
  }

  /** Carries out a call: over HTTP/1.1 when the kernel has taken the responses to those before it. */
  carryOut(call: OpenCall, work: () => void): void {
    const [first] = this.calls;
    if (call === first || 'stream' in call.response) work();
    else call.work = work;
  }

  /** Forgets all calls: the connection is closed. */
  end(): void {
    this.#isOver = true;
    for (const call of this.calls) this.#remove(call);
  }

  #endCall(call: OpenCall): void {
    if (!this.calls.has(call)) return;
    this.#remove(call);
    const [next] = this.calls;
    const work = next?.work;
    if (next === undefined || work === undefined || next.response.req.socket.destroyed) return;
    next.work = undefined;
    work();
  }

  #remove(call: OpenCall): void {
    this.calls.delete(call);
    this.#ledger.remove(call);
    call.end();
  }
}

/** A call whose response has not left. */
export class OpenCall {
  readonly connection: OpenConnection;
  readonly response: AnyResponse;
  /** Carries it out, if it waits for the calls before it. */
  work: (() => void) | undefined;
  /** Told before the connection is closed because of what its client does, or the stream is reset. */
  onCutOff: ((reason: CutOffReason) => void) | undefined;
  /** When its client last took some of the response, or began to have some to take. */
  movedMs = 0;
  /** What the kernel has not taken of the response, in bytes. */
  unsentBytes = 0;
  readonly #ledger: Ledger;
  readonly #client: string;
  #holder: string;
  #heldBytes = 0;
  #isOver = false;

  constructor(connection: OpenConnection, { headers }: AnyRequest, response: AnyResponse, ledger: Ledger) {
    this.connection = connection;
    this.response = response;
    this.#ledger = ledger;
    this.#client = connection.unknownHolder(headers);
    this.#holder = this.#client;
  }

  /** Whom its bytes count for: its caller, or its client until the caller is known. */
  get holder(): string {
    return this.#holder;
  }

  /** Whether its caller is known. */
  get isIdentified(): boolean {
    return this.#holder !== this.#client;
  }

  /** Tells who makes it. */
  identify(caller: string): void {
    this.#ledger.count(this.#holder, -this.#heldBytes);
    this.#holder = caller;
    this.#ledger.count(this.#holder, this.#heldBytes);
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
    this.#ledger.putLast(this);
  }

  /** Counts nothing more. */
  end(): void {
    this.release(this.#heldBytes);
    this.connection.unsentBytes -= this.unsentBytes;
    this.#isOver = true;
  }

  #count(bytes: number): void {
    this.#heldBytes += bytes;
    this.connection.heldBytes += bytes;
    this.#ledger.count(this.#holder, bytes);
  }
}

/**
 * Bounds what clients can hold of the memory of a process, whatever they send and however little they read.
 * - A connection is closed when its client has taken nothing of a response for `stalledMs`. Over HTTP/2 only the stream is
 *   reset if the client has taken some of others in the second half of that time, or another has nothing to take.
 * - When all calls hold too much, the caller who holds most loses the connection that holds most. Calls whose callers are not
 *   known count for their clients, at each listener. A client loses the connection that has waited for it longest: if it
 *   lost the largest, others at its address could send no large request. Were new calls refused instead, a client could
 *   keep all others out.
 */
export function createOpenCalls(stalledMs: number = timeouts.stalledMs): OpenCalls {
  /** In the order in which something of them moved last. */
  const calls = new Set<OpenCall>();
  const bytesByHolder = new Map<string, number>();
  const counts: Record<CutOffReason, number> = { stalled: 0, memory: 0, requests: 0 };
  let heldBytes = 0;
  let isWatching = false;

  function largestHolder(): string | undefined {
    let most = 0;
    let largest: string | undefined;
    for (const [holder, bytes] of bytesByHolder) {
      if (bytes <= most) continue;
      most = bytes;
      largest = holder;
    }
    return largest;
  }

  /** The connection that a caller or client loses first. */
  function firstToGo(holder: string | undefined): OpenConnection | undefined {
    let largest: OpenConnection | undefined;
    for (const call of calls) {
      if (call.holder !== holder) continue;
      if (!call.isIdentified) return call.connection;
      if (largest === undefined || call.connection.heldBytes > largest.heldBytes) largest = call.connection;
    }
    return largest;
  }

  const ledger: Ledger = {
    count: (holder, bytes) => {
      heldBytes += bytes;
      const held = (bytesByHolder.get(holder) ?? 0) + bytes;
      if (held === 0) bytesByHolder.delete(holder);
      else bytesByHolder.set(holder, held);
    },
    makeRoom: () => {
      while (heldBytes > heldBytesMax) {
        const connection = firstToGo(largestHolder());
        if (connection === undefined) return;
        ledger.cutOff(connection, 'memory');
      }
    },
    putLast: (call) => {
      calls.delete(call);
      calls.add(call);
    },
    remove: (call) => calls.delete(call),
    watch: () => {
      if (isWatching) return;
      isWatching = true;
      setTimeout(cutOffStalled, Math.min(timeouts.checkEveryMs, stalledMs / 4)).unref();
    },
    cutOff: (connection, reason) => {
      counts[reason] += 1;
      for (const call of connection.calls) call.onCutOff?.(reason);
      connection.end();
      connection.rules.cutOff(reason);
    },
  };

  function cutOffStalled(): void {
    const nowMs = performance.now();
    isWatching = false;
    for (const call of calls) {
      if (call.unsentBytes === 0) continue;
      ledger.watch();
      if (call.movedMs > nowMs - stalledMs) continue;
      if ('stream' in call.response && isInUse(call.connection, nowMs - stalledMs / 2)) {
        counts.stalled += 1;
        call.onCutOff?.('stalled');
        call.response.stream.destroy();
      } else ledger.cutOff(call.connection, 'stalled');
    }
  }

  return {
    connect: (rules) => new OpenConnection(rules, ledger),
    cutOffs: () => counts,
  };
}

/** Whether a client has taken some of a response since then, or has a call with nothing to take. */
function isInUse({ movedMs, calls }: OpenConnection, sinceMs: number): boolean {
  return movedMs > sinceMs || calls.values().some(({ unsentBytes }) => unsentBytes === 0);
}

/** The holder of calls whose caller is not known. No caller has such a name: names have no control characters. */
const unknownAt = (listener: string, address: string | undefined): string => `\0${listener} ${address}`;

/** What a request may take, with as much of a body as it announces, in bytes. */
function bytesOf({ httpVersionMajor, headers, rawHeaders }: AnyRequest): number {
  let bytes = httpVersionMajor === 1 ? overheadBytes.http1 : overheadBytes.http2;
  bytes += (rawHeaders.length / 2) * overheadBytes.header;
  for (const text of rawHeaders) bytes += text.length;
  if (headers['transfer-encoding'] !== undefined) return bytes + bodyBytesMax;
  const length = headers['content-length'];
  return length === undefined ? bytes : bytes + Math.min(Number(length), bodyBytesMax);
}
