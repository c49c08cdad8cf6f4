import { statSync } from 'node:fs';
import type { Logger } from 'pino';
import type { Clock } from '../../domain/clock.ts';
import { utcTimestamp } from '../../domain/utc.ts';
import { refuseChangeableByOthers } from '../../lib/file-access.ts';
import { pathsOf, readTlsFiles, type TlsFiles, type TlsMaterial } from './tls-files.ts';

/** How often the files are looked at, in milliseconds. */
const lookEveryMs = 2_000;
/** A certificate is near its end when it has less than this left, in milliseconds, … */
const endNearMs = 30 * 86_400_000;
/** … and less than this part of its whole life: some live for six days, and are renewed in the middle. */
const endNearPart = 1 / 3;

/** What a watch works with. */
export interface CertificateWatchOptions {
  readonly files: TlsFiles;
  /** What was read from them and is in force. */
  readonly material: TlsMaterial;
  /** Puts other material in force. Throws if it cannot be used; then nothing changes. */
  readonly use: (material: TlsMaterial) => void;
  readonly clock: Clock;
  /** Names the door. */
  readonly log: Logger;
}

/** Looks after the certificate of a door. */
export interface CertificateWatch {
  /** Until when the certificate in force is good, in Unix milliseconds. */
  endsAtMs(): number;
  /** Reads the files now, changed or not. */
  reload(): void;
  end(): void;
}

/**
 * Looks every two seconds whether the files of a certificate have changed, links included, and puts what they have in
 * force. What cannot be used is logged as an error once, and what was in force stays. The log also tells, once each, when
 * a certificate is near its end and when it is over.
 */
export function watchCertificate(options: CertificateWatchOptions): CertificateWatch {
  const { files, use, clock, log } = options;
  let inForce = options.material;
  let seen = stateOf(files);
  let tried = seen;
  let told: CertificateAge | undefined;
  let cancel = () => {};

  function reload(): void {
    tried = stateOf(files);
    try {
      refuseChangeableByOthers(pathsOf(files));
      const material = readTlsFiles(files);
      use(material);
      inForce = material;
      told = undefined;
      log.info({ endsAt: utcTimestamp(inForce.endsAtMs) }, 'the certificate was read and is in force');
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      log.error({ why, ...files }, 'the new certificate cannot be used: the one before stays in force');
    }
  }

  function tellAge(): void {
    const age = certificateAge(inForce, clock.nowMs());
    if (age === told) return;
    told = age;
    const endsAt = utcTimestamp(inForce.endsAtMs);
    if (age === 'NEAR_ITS_END') log.warn({ endsAt }, 'the certificate is near its end: renew it');
    if (age === 'OVER') log.error({ endsAt }, 'the certificate is over: clients refuse it');
  }

  function look(): void {
    const state = stateOf(files);
    // What has just changed may still be changing: certificate and key are written one after the other.
    if (state === seen && state !== tried) reload();
    seen = state;
    tellAge();
    cancel = clock.after(lookEveryMs, look);
  }

  look();
  return { endsAtMs: () => inForce.endsAtMs, reload, end: () => cancel() };
}

/** How near a certificate is to its end. */
export type CertificateAge = 'GOOD' | 'NEAR_ITS_END' | 'OVER';

/** How near a certificate is to its end, which `artseal check` and the log of the server tell. */
export function certificateAge(
  { beginsAtMs, endsAtMs }: Pick<TlsMaterial, 'beginsAtMs' | 'endsAtMs'>,
  nowMs: number,
): CertificateAge {
  const leftMs = endsAtMs - nowMs;
  if (leftMs <= 0) return 'OVER';
  return leftMs < Math.min(endNearMs, endNearPart * (endsAtMs - beginsAtMs)) ? 'NEAR_ITS_END' : 'GOOD';
}

/** Tells whether files are the same as before: a text of what the system says of them, other for every change. */
function stateOf(files: TlsFiles): string {
  return pathsOf(files).map(stateOfFile).join(' ');
}

function stateOfFile(path: string): string {
  try {
    const { dev, ino, size, mtimeMs, ctimeMs } = statSync(path);
    return [dev, ino, size, mtimeMs, ctimeMs].join();
  } catch (error) {
    // Missing, or in a folder that was closed to this user: reading it says so.
    return String(error);
  }
}
