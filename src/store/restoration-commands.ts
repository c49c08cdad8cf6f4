/** The state after a restore from a backup. */
export interface RestorationCommands {
  /** Returns the last restoration; undefined if the store was never restored. */
  FindRestoration: { readonly takes: object; readonly gives: Restoration | undefined };
  /**
   * Records that the store is served for the first time after a restore, Unix seconds; does nothing otherwise. The skipped
   * filing numbers become a leaf NUMBERS_SKIPPED of the evidence log.
   */
  RecordServing: { readonly takes: { readonly atS: number }; readonly gives: undefined };
}

/** A restoration from a backup. */
export interface Restoration {
  /** When the restored store was first served, Unix seconds; undefined if it was not. The original had stopped by then. */
  readonly servedAtS: number | undefined;
}
