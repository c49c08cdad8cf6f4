/** What a store that was restored from a backup has to know when it is served. */
export interface RestorationCommands {
  /** The last restoration of the store; undefined if it was never restored. */
  FindRestoration: { readonly takes: object; readonly gives: Restoration | undefined };
  /**
   * Notes that the store is served, Unix seconds, if it was restored and not served since: the filing numbers that are left out for
   * that are leaves of the evidence log from now on, NUMBERS_SKIPPED.
   */
  RecordServing: { readonly takes: { readonly atS: number }; readonly gives: undefined };
}

/** A restoration from a backup. */
export interface Restoration {
  /** When the store was first served since, Unix seconds: by then the original had ended. */
  readonly servedAtS: number | undefined;
}
