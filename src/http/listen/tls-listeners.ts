import type { TlsFiles } from './tls-files.ts';
import { openTlsDoor, type TlsDoor, type TlsDoorOptions } from './tls-listener.ts';

/** The two doors. */
export type DoorName = 'public' | 'internal';

/** The TLS of the doors that speak it. */
export interface TlsDoors {
  readonly public: TlsDoor | undefined;
  readonly internal: TlsDoor | undefined;
  /** Until when the certificates in force are good, in Unix milliseconds. */
  ends(): ReadonlyMap<DoorName, number>;
  /** Reads the files of all of them at once. */
  reload(): void;
  /** Looks at their files no more. */
  end(): void;
}

/** Opens the TLS of those doors that have files for it. Throws as `openTlsDoor` does. */
export function openTlsDoors(
  files: Readonly<Record<DoorName, TlsFiles | undefined>>,
  { log, ...options }: Omit<TlsDoorOptions, 'files' | 'protocols'>,
): TlsDoors {
  const opened = new Map<DoorName, TlsDoor>();
  const open = (door: DoorName, protocols: readonly string[]) => {
    if (files[door] === undefined) return undefined;
    const tls = openTlsDoor({ ...options, files: files[door], protocols, log: log.child({ door }) });
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
