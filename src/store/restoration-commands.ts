/** What a store that was restored from a backup has to know when it is served. */
export interface RestorationCommands {
  /**
   * Notes that the store is served at `nowS`, Unix seconds. If it was ever restored, when it was first served since the last
   * time: by then the original had ended, and the nonces that it spent after the backup are not known here.
   */
  NoteServed: { readonly takes: { readonly nowS: number }; readonly gives: number | undefined };
}
