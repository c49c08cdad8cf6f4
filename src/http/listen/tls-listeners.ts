import type { TlsFiles } from './tls-files.ts';
import { openTlsListener, type TlsListener, type TlsListenerOptions } from './tls-listener.ts';

/** The two doors. */
export type ListenerName = 'public' | 'internal';

/** The TLS of the doors that speak it. */
export interface TlsListeners {
  readonly public: TlsListener | undefined;
  readonly internal: TlsListener | undefined;
  /** Until when the certificates in force are good, in Unix milliseconds. */
  ends(): ReadonlyMap<ListenerName, number>;
  /** Reads the files of all of them at once. */
  reload(): void;
  /** Looks at their files no more. */
  end(): void;
}

/** Opens the TLS of those doors that have files for it. Throws as `openTlsListener` does. */
export function openTlsListeners(
  files: Readonly<Record<ListenerName, TlsFiles | undefined>>,
  { log, ...options }: Omit<TlsListenerOptions, 'files' | 'protocols'>,
): TlsListeners {
  const opened = new Map<ListenerName, TlsListener>();
  const open = (door: ListenerName, protocols: readonly string[]) => {
    if (files[door] === undefined) return undefined;
    const tls = openTlsListener({ ...options, files: files[door], protocols, log: log.child({ door }) });
    opened.set(door, tls);
    return tls;
  };
  return {
    public: open('public', ['http/1.1']),
    internal: open('internal', ['h2', 'http/1.1']),
    ends: () => new Map(Array.from(opened, ([door, { endsAtMs }]) => [door, endsAtMs()])),
    reload: () => {
      for (const { reload } of opened.values()) reload();
    },
    end: () => {
      for (const { end } of opened.values()) end();
    },
  };
}
