import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { listenOnUnixSocket } from './unix-socket.ts';

/** A host and a port to listen on. */
export interface TcpAddress {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
}

/** A Unix socket to listen on. */
export interface UnixAddress {
  /** Absolute. */
  readonly path: string;
}

/** An address to listen on. */
export type ListenAddress = TcpAddress | UnixAddress;

/** The text of an address: `host:port`, `[host]:port` for IPv6, `unix:/path`. */
export function addressText(address: ListenAddress): string {
  if ('path' in address) return `unix:${address.path}`;
  const { host, port } = address;
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The URL of an address: http, or https with TLS; `unix:/path` stays as it is. */
export function urlOf(address: string, isTls: boolean): string {
  return address.startsWith('unix:') ? address : `${isTls ? 'https' : 'http'}://${address}`;
}

/** Starts listening. Returns the text of the bound address; rejects with the error of the system. */
export async function listen(server: Server, address: ListenAddress): Promise<string> {
  if ('path' in address) {
    await listenOnUnixSocket(server, address.path);
    return addressText(address);
  }
  const { host, port } = address;
  server.listen({ host, port });
  await once(server, 'listening');
  const bound = server.address() as AddressInfo;
  return addressText({ host: bound.address, port: bound.port });
}
