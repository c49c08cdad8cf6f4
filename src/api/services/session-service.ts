import { SessionService } from '../../../gen/artseal/v1/session_pb.ts';
import { ApiError } from '../../domain/reason.ts';
import { consoleTokens } from '../../domain/token.ts';
import { createIssuance } from '../../keys/issuance.ts';
import { actorOf, type Call, type Implementation, implement, type ServicePrincipal } from '../operation.ts';
import { scopeNumber, tokenMessage } from './credential-operations.ts';
import type { ServiceDependencies } from './dependencies.ts';

/** SessionService, for all tokens. */
export function createSessionService(dependencies: ServiceDependencies): Implementation {
  const { clock, nowS } = dependencies;
  const { link, session } = consoleTokens;
  return implement(SessionService, undefined, {
    getSession: {
      run: async (_, { principal }) => ({
        caller: principal.caller,
        // No platform makes typed calls.
        scopes: principal.kind === 'platform' ? [] : principal.scopes.map(scopeNumber),
        tokenId: principal.kind === 'service' ? principal.tokenId : '',
      }),
    },
    createSession: {
      run: async (_, call) => {
        const { caller, scopes, tokenId } = principalNamed(call, link.prefix, 'a console link');
        const issuance = createIssuance({ ...dependencies, execute: call.execute });
        const name = `${session.prefix}${caller.slice(link.prefix.length)}`;
        const terms = { name, scopes, expiresAtS: nowS() + session.validS, platform: undefined };
        const { stored, token: text } = await issuance.issueToken(terms, actorOf(call, clock), tokenId);
        return { token: tokenMessage(stored, dependencies), text };
      },
    },
    endSession: {
      run: async (_, call) => {
        const { tokenId } = principalNamed(call, session.prefix, 'a session of the console');
        await call.execute({ kind: 'RevokeToken', by: actorOf(call, clock), tokenId });
        return {};
      },
    },
  });
}

/** The principal of a call with a token whose name begins with `prefix`. Throws PERMISSION_DENIED for any other. */
function principalNamed({ principal }: Call, prefix: string, kind: string): ServicePrincipal {
  if (principal.kind === 'service' && !principal.isPlatform && principal.caller.startsWith(prefix))
    return principal;
  throw new ApiError('PERMISSION_DENIED', `This call needs the token of ${kind}; artseal console makes one.`);
}
