import { Agent as PlainAgent } from 'node:http';
import { Agent, type RequestOptions } from 'node:https';
import { isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import { type SecureContext, type TLSSocket, connect as tlsConnect } from 'node:tls';
import type { Connect } from './connect.ts';

/** How long an idle connection is kept, in milliseconds. Servers keep it longer. */
const idleMs = 4_000;
/** How many connections are kept: as many as there are concurrent requests. */
const keptMax = 320;

interface AgentDependencies {
  readonly connect: Connect;
  readonly secureContext: SecureContext;
  /** Whether a connection is kept for further requests to the same host and port. */
  readonly keepAlive: boolean;
}

/** Options of a request through such an agent. Node passes an agent all options but `signal`, which has to abort connecting too. */
export interface AgentRequestOptions extends RequestOptions {
  readonly connectSignal: AbortSignal;
}

/** Connects https requests by `connect`, then TLS with a certificate that is valid for the host. */
export function createAgent({ connect, secureContext, keepAlive }: AgentDependencies): Agent {
  const agent = new Agent({ keepAlive, timeout: idleMs, maxFreeSockets: keptMax });
  const keep = agent.keepSocketAlive.bind(agent);
  const kept = new Set<Duplex>();

  async function secured(host: string, port: number, signal: AbortSignal): Promise<TLSSocket> {
    const socket = await connect(host, port, signal);
    const secure = tlsConnect({
      ...{ socket, host, servername: isIP(host) === 0 ? host : '', ALPNProtocols: ['http/1.1'] },
      // Explicit, because the environment can turn it off.
      ...{ secureContext, rejectUnauthorized: true },
    });
    return secure.once('close', () => kept.delete(secure));
  }

  agent.createConnection = (options, done) => {
    const { host, port, connectSignal } = options as AgentRequestOptions;
    secured(host as string, Number(port), connectSignal).then(
      (socket) => done?.(null, socket),
      (error) => done?.(error, undefined as never),
    );
    return undefined;
  };
  agent.keepSocketAlive = (socket) =>
    (kept.has(socket) || kept.size < keptMax) && kept.add(socket) && keep(socket);
  return agent;
}

/** Connects http requests by `connect`, each with a new connection. */
export function createPlainAgent(connect: Connect): PlainAgent {
  const agent = new PlainAgent({ keepAlive: false });
  agent.createConnection = (options, done) => {
    const { host, port, connectSignal } = options as AgentRequestOptions;
    connect(host as string, Number(port), connectSignal).then(
      (socket) => done?.(null, socket),
      (error) => done?.(error, undefined as never),
    );
    return undefined;
  };
  return agent;
}
