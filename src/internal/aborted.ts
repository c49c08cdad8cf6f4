/** Resolves when one of the signals is aborted, at once if one is. The last of them must be aborted some time. */
export function aborted(...signals: readonly AbortSignal[]): Promise<void> {
  const any = AbortSignal.any([...signals]);
  const { promise, resolve } = Promise.withResolvers<void>();
  if (any.aborted) resolve();
  else any.addEventListener('abort', () => resolve(), { once: true });
  return promise;
}
