import { type DescMethodUnary, toBinary, toJson } from '@bufbuild/protobuf';
import type { SentCredentials } from '../src/api/authentication.ts';
import type { ServicePrincipal } from '../src/api/operation.ts';
import type { CallResult, Calls, RoutedCall } from '../src/api/pipeline.ts';
import { ApiError, reasons } from '../src/domain/reason.ts';
import type { Request } from './requests.ts';

/** A response. */
export interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: clients read responses of every method.
  readonly json: any;
  readonly isReplay: boolean;
}

/** Passes requests to the call pipeline as the listeners of both APIs do, without sockets. */
export type Listener = ReturnType<typeof createListener>;

/** The method and the target that a signature covers, in addition to the body. */
export const signedMethod = 'POST';
export const targetOf = ({ method }: Request): string => `/${method.parent.typeName}/${method.name}`;
/** The body that a signature covers. */
export const bodyOf = ({ method, message }: Request): Uint8Array => toBinary(method.input, message);

export function createListener(calls: Calls) {
  return {
    /** Handles a signed call of a platform. */
    signed: async (request: Request, key: string | undefined, credentials: SentCredentials) => {
      const route = () => routed(request, key);
      const readBody = async () => bodyOf(request);
      const call = { method: signedMethod, target: targetOf(request), credentials, readBody, route };
      return written(request.method, await calls.signed(call, { requestId: 'simulated' }));
    },
    /** Handles a call of an internal system. */
    identified: async (request: Request, key: string | undefined, service: ServicePrincipal) =>
      written(
        request.method,
        await calls.identified(service, routed(request, key), { requestId: 'simulated' }),
      ),
  };
}

function routed({ method, message }: Request, key: string | undefined): RoutedCall {
  const idempotencyKeys = key === undefined ? [] : [key];
  return { method, idempotencyKeys, read: () => ({ message, violations: [] }) };
}

function written({ output }: DescMethodUnary, { response, isReplay }: CallResult): Answer {
  if (!(response instanceof ApiError)) return { status: 200, json: toJson(output, response), isReplay };
  const { reason, message, cause } = response;
  const why = reason === 'INTERNAL' && cause instanceof Error ? cause.stack : message;
  return { status: reasons[reason].http, json: { code: reason, message: why }, isReplay };
}
