import type { Logger } from 'pino';
import type { Clock } from '../../domain/clock.ts';
import { watchCertificate } from './certificate-watch.ts';
import type { ClientOf } from './clients.ts';
import { readTlsFiles, type TlsFiles, type TlsMaterial } from './tls-files.ts';
import { createTlsFront, type TlsFront } from './tls-front.ts';

/** The options of the TLS of a listener. */
export interface TlsListenerOptions {
  readonly files: TlsFiles;
  /** ALPN protocols, the preferred one first. */
  readonly protocols: readonly string[];
  readonly clientOf: ClientOf;
  readonly clock: Clock;
  /** Names the listener. */
  readonly log: Logger;
}

/** The TLS of a listener, with the current certificate of its files. */
export interface TlsListener {
  readonly front: TlsFront;
  /** The current certificate in PEM, followed by its chain. */
  certificate(): string;
  /** When it expires, in Unix milliseconds. */
  endsAtMs(): number;
  /** Reads the files now. */
  reload(): void;
  /** Stops watching the files. */
  end(): void;
}

/** Reads TLS files and watches them for changes. Throws TlsFileError, and the error of OpenSSL for a weak key. */
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
