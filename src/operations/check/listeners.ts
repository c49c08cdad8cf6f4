import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { type Config, settings } from '../../config/config.ts';
import type { Finding } from '../../domain/finding.ts';
import { utcTimestamp } from '../../domain/utc.ts';
import { addressText, type ListenAddress } from '../../http/listen/address.ts';
import { certificateAge, readTlsFiles, type TlsFiles } from '../../http/listen/tls-files.ts';
import { isLoopback } from '../../lib/networks.ts';
import { findingsOf } from './finding.ts';

/** Checks until when the certificates of the listeners with TLS are valid. */
export function checkCertificates({ publicTls, internalTls }: Config, nowMs: number): Finding[] {
  return [
    [publicTls, settings.publicTlsCert.variable] as const,
    [internalTls, settings.internalTlsCert.variable] as const,
  ].flatMap(([files, variable]) => (files === undefined ? [] : [checkCertificate(files, variable, nowMs)]));
}

function checkCertificate(files: TlsFiles, variable: string, nowMs: number): Finding {
  const { ok, warning, fault } = findingsOf('certificate');
  const material = readTlsFiles(files);
  const endsAt = utcTimestamp(material.endsAtMs);
  const named = `${files.certificate} of ${variable}`;
  switch (certificateAge(material, nowMs)) {
    case 'EXPIRED':
      return fault(`${named} expired at ${endsAt}, and clients reject it: renew it`);
    case 'EXPIRES_SOON':
      return warning(`${named} expires at ${endsAt}: renew it`);
    case 'GOOD':
      return ok(`${named} is valid until ${endsAt}`);
  }
}

/**
 * Warns of listeners that other machines may reach without TLS. It is no fault, since the server may be behind a proxy that
 * speaks TLS.
 */
export async function checkPlainListeners(config: Config): Promise<Finding[]> {
  const { ok, warning } = findingsOf('tls');
  const { publicAddress, publicTls, internalAddress, internalTls, metricsAddress } = config;
  const warnings: Finding[] = [];
  for (const [address, tls, { variable }, certificate] of [
    [publicAddress, publicTls, settings.publicAddress, settings.publicTlsCert],
    [internalAddress, internalTls, settings.internalAddress, settings.internalTlsCert],
  ] as const)
    if (tls === undefined && (await isExposed(address)))
      warnings.push(
        warning(
          `${addressText(address)} of ${variable} takes calls from other machines without TLS: set ` +
            `${certificate.variable} and its key; or have a proxy speak TLS, and let only that proxy reach this address ` +
            '(loopback, or a firewall)',
        ),
      );
  if (metricsAddress !== undefined && (await isExposed(metricsAddress)))
    warnings.push(
      warning(
        `${addressText(metricsAddress)} of ${settings.metricsAddress.variable} returns metrics to other machines ` +
          'without TLS and credentials: let only Prometheus reach it (a firewall)',
      ),
    );
  return warnings.length > 0 ? warnings : [ok('no listener takes calls from other machines without TLS')];
}

/** Whether other machines may reach an address, judged by the address only. */
async function isExposed(address: ListenAddress): Promise<boolean> {
  if ('path' in address) return false;
  const { host } = address;
  if (isIP(host) !== 0) return !isLoopback(host);
  // A name without address is reported by the check of addresses.
  const addresses = await lookup(host, { all: true }).catch(() => []);
  return !addresses.every((found) => isLoopback(found.address));
}
