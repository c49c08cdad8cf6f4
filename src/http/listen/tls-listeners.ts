import type { Logger } from 'pino';
import type { Clock } from '../../domain/clock.ts';
import { watchCertificate } from './certificate-watch.ts';
import type { ClientOf } from './clients.ts';
import { readTlsFiles, type TlsFiles, type TlsMaterial } from './tls-files.ts';
import { createTlsFront, type TlsFront } from './tls-front.ts';

type ListenerName = 'public' | 'internal';

/** The TLS of a listener, with the current certificate of its files. */
interface TlsListener {
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

/** The TLS of both listeners; undefined for plain HTTP. */
export interface TlsListeners {
  readonly public: TlsListener | undefined;
  readonly internal: TlsListener | undefined;
  /** When the current certificates expire, in Unix milliseconds. */
  ends(): ReadonlyMap<ListenerName, number>;
  /** Reads all files now. */
  reload(): void;
  /** Stops watching the files. */
  end(): void;
}

/**
 * Reads the TLS files of each listener that has some, and watches them for changes. Throws TlsFileError, and the error of
 * OpenSSL for a weak key.
 */
export function openTlsListeners(
  filesOf: Readonly<Record<ListenerName, TlsFiles | undefined>>,
  { clientOf, clock, log }: { readonly clientOf: ClientOf; readonly clock: Clock; readonly log: Logger },
): TlsListeners {
  const opened = new Map<ListenerName, TlsListener>();
  function open(listener: ListenerName, protocols: readonly string[]): TlsListener | undefined {
    const files = filesOf[listener];
    if (files === undefined) return undefined;
    let material = readTlsFiles(files);
    const ownLog = log.child({ listener });
    const front = createTlsFront({ material, protocols, clientOf, log: ownLog });
    const use = (renewed: TlsMaterial) => {
      front.use(renewed);
      material = renewed;
    };
    const watch = watchCertificate({ files, material, use, clock, log: ownLog });
    const tls = { front, certificate: () => material.certificate, ...watch };
    opened.set(listener, tls);
    return tls;
  }
  return {
    public: open('public', ['http/1.1']),
    internal: open('internal', ['h2', 'http/1.1']),
    ends: () => new Map(Array.from(opened, ([listener, { endsAtMs }]) => [listener, endsAtMs()])),
    reload: () => {
      for (const { reload } of opened.values()) reload();
    },
    end: () => {
      for (const { end } of opened.values()) end();
    },
  };
}
