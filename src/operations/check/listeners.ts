import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { type Config, settings } from '../../config/config.ts';
import { utcTimestamp } from '../../domain/utc.ts';
import { addressText, type ListenAddress } from '../../http/listen/address.ts';
import { certificateAge } from '../../http/listen/certificate-watch.ts';
import { readTlsFiles, type TlsFiles } from '../../http/listen/tls-files.ts';
import { isLoopback } from '../../lib/networks.ts';
import { type Finding, findingsOf } from './finding.ts';

/** Until when the certificates of the listeners that speak TLS are valid; nothing if none does. */
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
      return fault(`${named} expired at ${endsAt}, and clients refuse it: renew it`);
    case 'EXPIRES_SOON':
      return warning(`${named} expires at ${endsAt}: renew it`);
    case 'GOOD':
      return ok(`${named} is valid until ${endsAt}`);
  }
}

/**
 * Which listeners other machines may reach without TLS. It may be meant so, behind a proxy that speaks TLS; so it is a
 * warning and no fault.
 */
export async function checkPlainListeners(config: Config): Promise<Finding[]> {
  const { ok, warning } = findingsOf('tls');
  const { publicAddress, publicTls, internalAddress, internalTls, metricsAddress } = config;
  const named = (address: ListenAddress, variable: string) => `${addressText(address)} of ${variable}`;
  const encrypt = (address: ListenAddress, variable: string, certificate: string) =>
    `${named(address, variable)} takes calls from other machines without TLS: set ${certificate} and its key; ` +
    'or have a proxy speak TLS, and let that proxy alone reach this address (loopback, or a firewall)';
  const warnings: Finding[] = [];
  if (publicTls === undefined && (await isExposed(publicAddress)))
    warnings.push(
      warning(encrypt(publicAddress, settings.publicAddress.variable, settings.publicTlsCert.variable)),
    );
  if (internalTls === undefined && (await isExposed(internalAddress)))
    warnings.push(
      warning(encrypt(internalAddress, settings.internalAddress.variable, settings.internalTlsCert.variable)),
    );
  if (metricsAddress !== undefined && (await isExposed(metricsAddress)))
    warnings.push(
      warning(
        `${named(metricsAddress, settings.metricsAddress.variable)} returns metrics to other machines without TLS ` +
          'and credentials: let Prometheus alone reach it (a firewall)',
      ),
    );
  return warnings.length > 0 ? warnings : [ok('no listener takes calls from other machines without TLS')];
}

/** Whether other machines may reach an address, as far as the address tells. */
async function isExposed(address: ListenAddress): Promise<boolean> {
  if ('path' in address) return false;
  const { host } = address;
  if (isIP(host) !== 0) return !isLoopback(host);
  // One that has no address cannot be listened on, which is a fault of its own.
  const addresses = await lookup(host, { all: true }).catch(() => []);
  return !addresses.every((found) => isLoopback(found.address));
}
