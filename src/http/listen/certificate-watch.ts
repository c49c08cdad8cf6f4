import { statSync } from 'node:fs';
import type { Logger } from 'pino';
import type { Clock } from '../../domain/clock.ts';
import { utcTimestamp } from '../../domain/utc.ts';
import { refuseChangeableByOthers } from '../../lib/file-access.ts';
import { pathsOf, readTlsFiles, type TlsFiles, type TlsMaterial } from './tls-files.ts';

/** How often the files are checked, in milliseconds. */
const checkEveryMs = 2_000;
/** A certificate expires soon if it has less than this left, in milliseconds, … */
const soonMs = 30 * 86_400_000;
/** … and less than this part of its lifetime: some are valid for six days and renewed after three. */
const soonPart = 1 / 3;

/** The options of a certificate watch. */
export interface CertificateWatchOptions {
  readonly files: TlsFiles;
  /** The current content of the files. */
  readonly material: TlsMaterial;
  /** Switches to new material. Throws if it cannot be used; then nothing changes. */
  readonly use: (material: TlsMaterial) => void;
  readonly clock: Clock;
  /** Names the listener. */
  readonly log: Logger;
}

/** Watches the certificate of a listener. */
export interface CertificateWatch {
  /** When the current certificate expires, in Unix milliseconds. */
  endsAtMs(): number;
  /** Reads the files now, changed or not. */
  reload(): void;
  end(): void;
}

/**
 * Checks the files of a certificate every two seconds, links included, and uses them when they have changed. If they cannot be
 * used, it logs an error once and keeps the current certificate. It also logs, once each, that a certificate expires soon and
 * that it has expired.
 */
export function watchCertificate(options: CertificateWatchOptions): CertificateWatch {
  const { files, use, clock, log } = options;
  let current = options.material;
  let seen = stateOf(files);
  let tried = seen;
  let loggedAge: CertificateAge | undefined;
  let cancel = () => {};

  function reload(): void {
    tried = stateOf(files);
    try {
      refuseChangeableByOthers(pathsOf(files));
      const material = readTlsFiles(files);
      use(material);
      current = material;
      loggedAge = undefined;
      log.info({ endsAt: utcTimestamp(current.endsAtMs) }, 'the certificate was reloaded');
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      log.error({ why, ...files }, 'the new certificate cannot be used: the current one is kept');
    }
  }

  function logAge(): void {
    const age = certificateAge(current, clock.nowMs());
    if (age === loggedAge) return;
    loggedAge = age;
    const endsAt = utcTimestamp(current.endsAtMs);
    if (age === 'EXPIRES_SOON') log.warn({ endsAt }, 'the certificate expires soon: renew it');
    if (age === 'EXPIRED') log.error({ endsAt }, 'the certificate has expired: clients reject it');
  }

  function check(): void {
    const state = stateOf(files);
    // Certificate and key are written one after the other, so wait until nothing changes any more.
    if (state === seen && state !== tried) reload();
    seen = state;
    logAge();
    cancel = clock.after(checkEveryMs, check);
  }

  check();
  return { endsAtMs: () => current.endsAtMs, reload, end: () => cancel() };
}

/** How close a certificate is to its expiry. */
export type CertificateAge = 'GOOD' | 'EXPIRES_SOON' | 'EXPIRED';

/** How close a certificate is to its expiry at `nowMs`, in Unix milliseconds. */
export function certificateAge(
  { beginsAtMs, endsAtMs }: Pick<TlsMaterial, 'beginsAtMs' | 'endsAtMs'>,
  nowMs: number,
): CertificateAge {
  const leftMs = endsAtMs - nowMs;
  if (leftMs <= 0) return 'EXPIRED';
  return leftMs < Math.min(soonMs, soonPart * (endsAtMs - beginsAtMs)) ? 'EXPIRES_SOON' : 'GOOD';
}

/** A text that changes whenever one of the files does. */
function stateOf(files: TlsFiles): string {
  return pathsOf(files).map(stateOfFile).join(' ');
}

function stateOfFile(path: string): string {
  try {
    const { dev, ino, size, mtimeMs, ctimeMs } = statSync(path);
    return [dev, ino, size, mtimeMs, ctimeMs].join();
  } catch (error) {
    // The file is missing or its folder is closed: reading it reports that.
    return String(error);
  }
}
