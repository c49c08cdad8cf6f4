import type { Logger } from 'pino';
import type { Clock } from '../../domain/clock.ts';
import { watchCertificate } from './certificate-watch.ts';
import type { ClientOf } from './clients.ts';
import { readTlsFiles, type TlsFiles, type TlsMaterial } from './tls-files.ts';
import { createTlsFront, type TlsFront } from './tls-front.ts';

/** What a door needs in order to speak TLS. */
export interface TlsListenerOptions {
  readonly files: TlsFiles;
  /** The protocols that it speaks, the one that it prefers first (ALPN). */
  readonly protocols: readonly string[];
  readonly clientOf: ClientOf;
  readonly clock: Clock;
  /** Names the door. */
  readonly log: Logger;
}

/** The TLS of a door, with the certificate that its files have now. */
export interface TlsListener {
  readonly front: TlsFront;
  /** The certificate in force, in PEM, its chain behind it. */
  certificate(): string;
  /** Until when it is good, in Unix milliseconds. */
  endsAtMs(): number;
  /** Reads the files at once. */
  reload(): void;
  /** Looks at the files no more. */
  end(): void;
}

/** Reads the files of a door and follows their changes. Throws TlsFileError, and what OpenSSL says of a weak key. */
export function openTlsListener({ files, clock, ...options }: TlsListenerOptions): TlsListener {
  let material = readTlsFiles(files);
  const front = createTlsFront({ material, ...options });
  const use = (renewed: TlsMaterial) => {
    front.use(renewed);
    material = renewed;
  };
  return {
    front,
    certificate: () => material.certificate,
    ...watchCertificate({ files, material, use, clock, log: options.log }),
  };
}
