import {
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  type Message,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import { type Actor, checkReason } from '../domain/audit-entry.ts';
import type { Tier } from '../domain/caller.ts';
import type { Clock } from '../domain/clock.ts';
import { ApiError } from '../domain/reason.ts';
import { platformScopes, type Scope, scopeNeeded } from '../domain/token.ts';
import { rejectViolations, type Violation } from '../domain/violation.ts';
import { shownName } from '../lib/strict-json.ts';
import type { CallerRef } from '../store/filing-commands.ts';
import type { Execute } from '../store/store.ts';

/** Who a call is made for. */
export type Principal = PlatformPrincipal | TypedPrincipal;

/** Who makes typed calls. */
export type TypedPrincipal = ServicePrincipal | LocalPrincipal;

/** An external platform, authenticated by a signature. */
export interface PlatformPrincipal extends CallerRef {
  readonly kind: 'platform';
  readonly tier: Tier;
  /** Calls a month; undefined for unlimited. */
  readonly monthlyQuota: number | undefined;
  /** Filing numbers that it may use in a year; undefined for no cap. */
  readonly filingCap?: number | undefined;
}

/**
 * An internal system, authenticated by a bearer token. If the token is a platform's, `callerId` and `caller` are the
 * platform's. There is no rate and no quota, but the platform's cap on filings applies.
 */
export interface ServicePrincipal extends CallerRef {
  readonly kind: 'service';
  /** Public id of the token. */
  readonly tokenId: string;
  readonly scopes: readonly Scope[];
  readonly isPlatform: boolean;
  /** Filing numbers that the platform may use in a year; undefined for no cap. */
  readonly filingCap?: number | undefined;
}

/** An operator on this machine, over the admin socket or in the process of a command. */
export interface LocalPrincipal extends CallerRef {
  readonly kind: 'local';
  readonly scopes: readonly Scope[];
  readonly isPlatform: false;
  readonly filingCap?: undefined;
}

/** The operator who says to be this user. Only the mode of the admin socket proves it. */
export function localPrincipal(user: string): LocalPrincipal {
  const scopes = ['read', 'webhook', 'link', 'operate'] as const;
  return { kind: 'local', callerId: noCaller, caller: `local:${user}`, scopes, isPlatform: false };
}

/** The caller id of local operators, who own nothing. Ids of callers are positive. */
const noCaller = 0;

/** The caller whose filings and escrows a principal sees: a platform its own, an internal system all (undefined). */
export function ownerScope(principal: Principal): number | undefined {
  return principal.kind === 'platform' || principal.isPlatform ? principal.callerId : undefined;
}

/** The principal of a call as the owner of what the call makes. Throws PERMISSION_DENIED for a local operator. */
export function callerOf({ principal }: { readonly principal: Principal }): CallerRef {
  const { kind, callerId, caller } = principal;
  if (kind !== 'local') return { callerId, caller };
  throw new ApiError(
    'PERMISSION_DENIED',
    'A command without a token owns nothing: make this call with a token.',
  );
}

function actorName(principal: Principal): string {
  const { kind, caller } = principal;
  if (kind === 'local') return caller;
  return kind === 'platform' ? `platform ${caller}` : `token ${principal.tokenId} (${caller})`;
}

/** The platform or the operator that makes a call, for the audit log. An empty `reason` means none. */
export function actorOf(
  { principal }: { readonly principal: Principal },
  clock: Pick<Clock, 'nowMs'>,
  reason = '',
): Actor {
  return { actor: actorName(principal), atS: Math.floor(clock.nowMs() / 1000), reason: reason || undefined };
}

/** The header in which a command names its user, percent-encoded. */
export const userHeader = 'artseal-user';

/** Identifies a local operator by the value of `userHeader`. Throws AUTH_HEADER_INVALID. */
export function identifyLocal(user: string | null): LocalPrincipal {
  return localPrincipal(shownName(decodedUser(user ?? '') || 'unknown'));
}

function decodedUser(user: string): string {
  try {
    return decodeURIComponent(user);
  } catch {
    throw new ApiError('AUTH_HEADER_INVALID', `The header ${userHeader} must be percent-encoded UTF-8.`);
  }
}

/** A call of an operation over either API. */
export interface Call {
  readonly principal: Principal;
  /**
   * Runs a command; resolves when it is durable. The first command is stored together with the admission of the call. If the
   * Idempotency-Key was used for the same request before, it returns the stored result and does nothing. Throws ApiError.
   */
  readonly execute: Execute;
  /**
   * Stores the admission of the call without a command. Then `execute` stores no results under the Idempotency-Key: a repeated call
   * runs again. For calls of many commands, of which each continues what an earlier call began. Throws ApiError.
   */
  readonly admit: () => Promise<void>;
  /** Runs a further command. Its result replaces the one stored under the Idempotency-Key. Throws ApiError. */
  readonly executeNext: Execute;
  /** Waits for another party. Meanwhile the call does not count as running. Rejects as `wait` does. */
  readonly pause: <T>(wait: () => Promise<T>) => Promise<T>;
}

/** A call whose response is a stream. */
export interface StreamCall {
  readonly principal: Principal;
  /** Runs a command; resolves when it is durable. Throws ApiError. */
  readonly execute: Execute;
  /** Aborted when the client is gone or the server drains. The stream must then end, whatever it waits for. */
  readonly signal: AbortSignal;
}

/** The first step of an operation. */
interface Checked<I extends DescMessage> {
  /** Returns the rules that a message breaks; none by default. */
  check?(message: MessageShape<I>, principal: Principal): readonly Violation[];
}

/** An operation that returns one message. `run` takes a checked message. It throws ApiError, or rejects with it. */
export interface UnaryOperation<I extends DescMessage = DescMessage, O extends DescMessage = DescMessage>
  extends Checked<I> {
  run(message: MessageShape<I>, call: Call): Promise<MessageInitShape<O>>;
}

/** An operation that returns a stream of messages. */
export interface StreamingOperation<I extends DescMessage = DescMessage, O extends DescMessage = DescMessage>
  extends Checked<I> {
  run(message: MessageShape<I>, call: StreamCall): AsyncIterable<MessageInitShape<O>>;
}

/** The message of a call and its violations. A field with a violation keeps its default. */
export interface Reading {
  readonly message: Message;
  readonly violations: readonly Violation[];
}

const operationNames = new WeakMap<DescMethod, string>();

/** The name of a method as in its RPC path: `artseal.v1.FilingService/CreateFiling`. The same text each time, which is hashed once. */
export function operationName(method: DescMethod): string {
  const known = operationNames.get(method);
  if (known !== undefined) return known;
  const name = `${method.parent.typeName}/${method.name}`;
  operationNames.set(method, name);
  return name;
}

/** An operation for each RPC of a service. */
export type Operations<S extends DescService> = {
  readonly [Name in keyof S['method']]: S['method'][Name] extends DescMethodUnary<infer I, infer O>
    ? UnaryOperation<I, O>
    : S['method'][Name] extends DescMethodServerStreaming<infer I, infer O>
      ? StreamingOperation<I, O>
      : never;
};

/** A service of the schema with its operations. */
export interface Implementation {
  readonly service: DescService;
  /** The scope that writing calls need; `scopeNeeded` derives that of reading calls. Undefined if every caller may make all calls. */
  readonly scope: Scope | undefined;
  readonly operations: ReadonlyMap<DescMethod, UnaryOperation | StreamingOperation>;
}

/**
 * Pairs a service with its operations. Each also checks the field `reason` of its request. Throws if a method that streams may
 * not be repeated.
 */
export function implement<S extends DescService>(
  service: S,
  scope: Scope | undefined,
  operations: Operations<S>,
): Implementation {
  const found = operations as Readonly<Record<string, UnaryOperation | StreamingOperation>>;
  const entries = service.methods.flatMap((method) => {
    if (isStreaming(method) && !mayRepeat(method))
      throw new Error(`${method} streams, so it must have NO_SIDE_EFFECTS or IDEMPOTENT.`);
    const operation = found[method.localName];
    return operation === undefined ? [] : [[method, withReason(method, operation)] as const];
  });
  return { service, scope, operations: new Map(entries) };
}

/** An operation that also checks the reason in its message, if it has one. */
function withReason<O extends UnaryOperation | StreamingOperation>({ input }: DescMethod, operation: O): O {
  if (input.field.reason === undefined) return operation;
  const check: O['check'] = (message, principal) => {
    const { reason = '' } = message as { readonly reason?: string };
    return [...(operation.check?.(message, principal) ?? []), ...checkReason(reason)];
  };
  return { ...operation, check };
}

/** Whether a method may change something. If it returns one message, its calls take an Idempotency-Key. */
export function isWriting({ idempotency }: DescMethod): boolean {
  return idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
}

/**
 * Whether a repeated call does no harm. A stream has no admission, so nothing recognises the repetition. Backups are IDEMPOTENT:
 * they write files and not the store. CreateBackup needs a file that does not exist, so a repeated call fails; a repeated
 * RotateBackups takes one more backup at worst. SendNotices continues where an earlier call ended.
 */
function mayRepeat({ idempotency }: DescMethod): boolean {
  return idempotency !== MethodOptions_IdempotencyLevel.IDEMPOTENCY_UNKNOWN;
}

/** Whether a method takes and returns one message. */
export function isUnary(method: DescMethod): method is DescMethodUnary {
  return method.methodKind === 'unary';
}

/** Whether a method takes one message and returns a stream. */
export function isStreaming(method: DescMethod): method is DescMethodServerStreaming {
  return method.methodKind === 'server_streaming';
}

/** Finds and calls the operations of methods. */
export type Dispatcher = ReturnType<typeof createDispatcher>;

export function createDispatcher(implementations: readonly Implementation[]) {
  const entries = implementations.flatMap(({ scope, operations }) =>
    [...operations].map(([method, operation]) => {
      return [method, { needed: scope && scopeNeeded(scope, isWriting(method)), operation }] as const;
    }),
  );
  const served = new Map(entries);

  /**
   * The operation of a method, after all checks of a message. Throws NOT_FOUND, PERMISSION_DENIED, and VALIDATION_FAILED, which
   * names the violations found before together with the operation's own.
   */
  function checked(
    method: DescMethod,
    message: Message,
    principal: Principal,
    before: readonly Violation[] = [],
  ) {
    const found = served.get(method);
    if (found === undefined) throw new ApiError('NOT_FOUND', `${method.name} is not served.`);
    const { needed, operation } = found;
    if (needed !== undefined) checkScope(needed, principal, method);
    // The error names one violation of each field, the first. The reader's come first: they describe what the caller sent.
    rejectViolations([...before, ...(operation.check?.(message, principal) ?? [])]);
    return operation;
  }

  return {
    services: implementations.map(({ service }): DescService => service),
    /** Throws PERMISSION_DENIED. Checks nothing for a method that needs no scope or is not served. */
    checkScope: (principal: Principal, method: DescMethod): void => {
      const needed = served.get(method)?.needed;
      if (needed !== undefined) checkScope(needed, principal, method);
    },
    /**
     * Calls the operation of a method. `violations` were found while the message was read. Throws ApiError, or any other error for
     * a fault of the server.
     */
    invoke: async (
      method: DescMethodUnary,
      message: Message,
      call: Call,
      violations?: readonly Violation[],
    ): Promise<Message> => {
      const operation = checked(method, message, call.principal, violations) as UnaryOperation;
      return create(method.output, await operation.run(message, call));
    },
    /** Calls the operation of a streaming method. Iterating throws as `invoke` does. */
    stream: async function* (
      method: DescMethodServerStreaming,
      message: Message,
      call: StreamCall,
    ): AsyncGenerator<Message, void> {
      const operation = checked(method, message, call.principal) as StreamingOperation;
      for await (const response of operation.run(message, call)) yield create(method.output, response);
    },
  };
}

/** Throws PERMISSION_DENIED. */
function checkScope(needed: Scope, principal: Principal, { name }: DescMethod): void {
  const granted = principal.kind === 'platform' ? platformScopes : principal.scopes;
  if (granted.includes(needed)) return;
  const isForPlatform = principal.kind === 'platform' || principal.isPlatform;
  const remedy =
    isForPlatform && needed === 'operate'
      ? 'which tokens of platforms cannot have'
      : `the operator issues one: artseal token create --name NAME --scopes ${needed}`;
  throw new ApiError('PERMISSION_DENIED', `${name} needs a token with the scope ${needed}; ${remedy}.`);
}
