/** What callers are told whose write was under way when the files were taken away or the thread of the store ended. */
export const fateUnknown =
  'It is not known whether this was stored; ask for it, or repeat the call under the same Idempotency-Key.';
