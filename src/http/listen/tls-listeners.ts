import type { TlsFiles } from './tls-files.ts';
import { openTlsListener, type TlsListener, type TlsListenerOptions } from './tls-listener.ts';

type ListenerName = 'public' | 'internal';

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

/** Opens the TLS of each listener that has files. Throws as `openTlsListener` does. */
export function openTlsListeners(
  files: Readonly<Record<ListenerName, TlsFiles | undefined>>,
  { log, ...options }: Omit<TlsListenerOptions, 'files' | 'protocols'>,
): TlsListeners {
  const opened = new Map<ListenerName, TlsListener>();
  const open = (listener: ListenerName, protocols: readonly string[]) => {
    const own = files[listener];
    if (own === undefined) return undefined;
    const tls = openTlsListener({ ...options, files: own, protocols, log: log.child({ listener }) });
    opened.set(listener, tls);
    return tls;
  };
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
