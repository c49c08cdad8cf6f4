import type { DescService } from '@bufbuild/protobuf';
import { type Client, Code, ConnectError, createClient, type Interceptor } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-web';
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { type Token_Scope, Token_Scope as TokenScope } from '../../gen/artseal/v1/admin_pb.ts';
import { SessionService } from '../../gen/artseal/v1/session_pb.ts';
import { ErrorInfoSchema } from '../../gen/google/rpc/error_details_pb.ts';

/** What the console may do for the operator, and how it calls the server. */
export interface Session {
  /** Name of the platform that the token acts for, or else of the internal system. */
  readonly caller: string;
  readonly tokenId: string;
  readonly scopes: readonly Token_Scope[];
  /** Whether a link made it, so that signing out revokes it. */
  readonly isFromLink: boolean;
  can(scope: keyof typeof TokenScope): boolean;
  client<S extends DescService>(service: S): Client<S>;
}

/** How long a call may take, in milliseconds. */
const callTimeoutMs = 30_000;
/** Where this tab keeps its token. It survives a reload, and ends with the tab. */
const storageKey = 'artseal-console';

/** A token that the tab keeps. */
interface Kept {
  readonly token: string;
  readonly isFromLink: boolean;
}

/** Calls the services with a token. `onRejected` runs when the server rejects the token. */
function clientsOf(token: string, onRejected: () => void): Session['client'] {
  const authorize: Interceptor = (next) => async (request) => {
    request.header.set('Authorization', `Bearer ${token}`);
    try {
      return await next(request);
    } catch (error) {
      if (ConnectError.from(error).code === Code.Unauthenticated) onRejected();
      throw error;
    }
  };
  const transport = createConnectTransport({
    baseUrl: location.origin,
    useBinaryFormat: true,
    defaultTimeoutMs: callTimeoutMs,
    interceptors: [authorize],
  });
  return (service) => createClient(service, transport);
}

/** Opens a session with a token, and keeps the token in this tab. Rejects with ConnectError. */
export async function signIn({ token, isFromLink }: Kept, onRejected: () => void): Promise<Session> {
  const client = clientsOf(token, () => {
    sessionStorage.removeItem(storageKey);
    onRejected();
  });
  const { caller, scopes, tokenId } = await client(SessionService).getSession({});
  sessionStorage.setItem(storageKey, JSON.stringify({ token, isFromLink }));
  const can: Session['can'] = (scope) => scopes.includes(TokenScope[scope]);
  return { caller, scopes, tokenId, isFromLink, can, client };
}

/** Exchanges the token of a one-time link for that of a session. Rejects with ConnectError. */
export async function openLink(link: string): Promise<Kept> {
  const { text } = await clientsOf(link, () => {})(SessionService).createSession({});
  return { token: text, isFromLink: true };
}

/** Takes the token of a one-time link out of the address bar and the history; undefined if there is none. */
export function takeLink(): string | undefined {
  const link = /^#link=(.+)$/.exec(location.hash)?.[1];
  if (link !== undefined) history.replaceState(null, '', location.pathname);
  return link;
}

/** The token that this tab keeps; undefined if there is none. */
export function keptToken(): Kept | undefined {
  const text = sessionStorage.getItem(storageKey);
  return text === null ? undefined : (JSON.parse(text) as Kept);
}

/** Forgets the token, and revokes it if a link made it. */
export async function signOut({ client, isFromLink }: Session): Promise<void> {
  sessionStorage.removeItem(storageKey);
  if (isFromLink) await client(SessionService).endSession({});
}

/** The session of the components below it. */
export const SessionContext = createContext<Session | undefined>(undefined);

/** The session of the operator who is signed in. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === undefined) throw new Error('Nobody is signed in.');
  return session;
}

/** An error of a call, in words. */
export interface Problem {
  /** The reason, such as `VALIDATION_FAILED`. */
  readonly code: string;
  readonly message: string;
  readonly requestId: string | undefined;
  /** Whether a retry with the same Idempotency-Key may still find out what became of the call. */
  readonly isOpen: boolean;
}

/** Describes why a call failed: what the server says, that it said nothing, or what is wrong with the input. */
export function problemOf(thrown: unknown): Problem {
  if (!(thrown instanceof ConnectError)) {
    const message = `The call was not sent: ${thrown instanceof Error ? thrown.message : thrown}.`;
    return { code: 'NOT_SENT', message, requestId: undefined, isOpen: false };
  }
  const [info] = thrown.findDetails(ErrorInfoSchema);
  if (info !== undefined)
    return {
      code: info.reason,
      message: thrown.rawMessage,
      requestId: info.metadata.requestId,
      isOpen: [Code.Unavailable, Code.DeadlineExceeded, Code.Aborted].includes(thrown.code),
    };
  const message = `The server did not respond: ${thrown.rawMessage}.`;
  return { code: 'NO_RESPONSE', message, requestId: undefined, isOpen: true };
}
