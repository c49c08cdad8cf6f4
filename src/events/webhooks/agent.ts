import type { ClientRequestArgs } from 'node:http';
import { Agent } from 'node:https';
import { isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import { type SecureContext, connect as tlsConnect } from 'node:tls';
import type { Connect } from './connect.ts';

/** How long an idle connection is kept, in milliseconds. Servers keep it longer. */
const idleMs = 4_000;
/** How many connections are kept: as many as there are concurrent requests. */
const keptMax = 320;

/** How requests connect: with an agent that keeps connections, or each with a new connection. */
export type Connecting = Pick<ClientRequestArgs, 'agent' | 'createConnection'>;

/** Options of a request. Node does not pass on `signal`, which has to abort connecting too. */
export interface ConnectingOptions extends ClientRequestArgs {
  readonly connectSignal: AbortSignal;
}

/** Makes requests connect by `connect`. */
export function connectingBy(connect: Connect): NonNullable<Connecting['createConnection']> {
  return (options, done) => {
    const { host, port, connectSignal } = options as ConnectingOptions;
    connect(host as string, Number(port), connectSignal).then(
      (socket) => done(null, socket),
      (error) => done(error, undefined as never),
    );
    return undefined;
  };
}

/** Connects by `connect`, then TLS. The certificate has to be valid for the host. */
export function createSecureConnect(connect: Connect, secureContext: SecureContext): Connect {
  return async (host, port, signal) =>
    tlsConnect({
      ...{ socket: await connect(host, port, signal), host, servername: isIP(host) === 0 ? host : '' },
      // Explicit, because the environment can turn it off.
      ...{ ALPNProtocols: ['http/1.1'], secureContext, rejectUnauthorized: true },
    });
}

/** Keeps connections for further requests to the same host and port. */
export function createKeepingAgent(createConnection: NonNullable<Connecting['createConnection']>): Agent {
  const agent = new Agent({ keepAlive: true, timeout: idleMs, maxFreeSockets: keptMax });
  const keep = agent.keepSocketAlive.bind(agent);
  const kept = new Set<Duplex>();
  agent.createConnection = createConnection as Agent['createConnection'];
  agent.keepSocketAlive = (socket) => {
    if (!kept.has(socket)) {
      if (kept.size >= keptMax) return false;
      kept.add(socket);
      socket.once('close', () => kept.delete(socket));
    }
    return keep(socket);
  };
  return agent;
}
