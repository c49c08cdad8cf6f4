import { isIP } from 'node:net';
import { deceptiveCharacterRule } from '../../domain/text.ts';
import { canonical, listOf, loopback } from '../../lib/networks.ts';
import type { AddressPolicy } from './addresses.ts';

/** The longest URL of an endpoint, in characters. */
export const targetMax = 2_048;

/** The addresses of localhost and all names below it, without a lookup (RFC 6761). */
const localhost = ['127.0.0.1', '::1'];

/** Stricter than the URL parser, which accepts more and finds another host in it than other parsers do. */
const absoluteForm = /^https?:\/\/[^/\s\p{Cc}\\][^\s\p{Cc}\\]*$/iu;

const loopbackList = listOf(loopback);

/** What `checkTarget` accepts. */
export interface TargetRules {
  readonly policy: AddressPolicy;
  /** Whether an endpoint on this machine may have an http URL. */
  readonly plainLoopback: boolean;
}

/**
 * Returns the rule that the URL of an endpoint breaks, to follow the name of its field; undefined if it is accepted. Any port is
 * accepted. A name is not looked up: its addresses are checked for each connection.
 */
export function checkTarget(text: string, { policy, plainLoopback }: TargetRules): string | undefined {
  const deceptiveRule = deceptiveCharacterRule(text);
  if (deceptiveRule !== undefined) return deceptiveRule;
  const url = text.length <= targetMax && absoluteForm.test(text) ? URL.parse(text) : null;
  const isPlain = url?.protocol === 'http:';
  if (url === null || (isPlain && !(plainLoopback && isLoopback(hostOf(url))))) {
    const plain = plainLoopback ? ', or http:// at localhost, 127.0.0.1 or [::1]' : '';
    return `must be an absolute https:// URL of at most ${targetMax} characters${plain}`;
  }
  if (url.username !== '' || url.password !== '') return 'must have no user name and no password';
  if (text.includes('#')) return 'must have no #';
  if (url.port === '0') return 'must have a port from 1 to 65535';
  const kinds = (knownAddresses(hostOf(url)) ?? []).map(policy);
  if (kinds.length === 0 || kinds.includes(undefined)) return undefined;
  return `must have a host at a public address: ${url.hostname} is ${kinds[0]}`;
}

/** Whether a host is this machine, without a lookup. */
function isLoopback(host: string): boolean {
  const addresses = knownAddresses(host)?.map(canonical) ?? [];
  return addresses.some((address) => loopbackList.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4'));
}

/** The host of a URL in the form that sockets need: an IPv6 address without brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

/** The addresses of a host that needs no lookup, an address or localhost; undefined for other names. */
export function knownAddresses(host: string): readonly string[] | undefined {
  if (isIP(host) !== 0) return [host];
  return /(^|\.)localhost\.?$/.test(host) ? localhost : undefined;
}
