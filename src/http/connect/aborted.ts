import { once } from 'node:events';

/** Resolves when one of the signals is aborted. One of them must be aborted eventually. */
export async function aborted(...signals: readonly AbortSignal[]): Promise<void> {
  const any = AbortSignal.any([...signals]);
  if (!any.aborted) await once(any, 'abort');
}

/**
 * Yields the items of a source until it ends or one of the signals is aborted, even while the next item is awaited. One of the
 * signals must be aborted eventually.
 */
export async function* untilAborted<T>(
  source: AsyncIterable<T>,
  ...signals: readonly AbortSignal[]
): AsyncGenerator<T> {
  const iterator = source[Symbol.asyncIterator]();
  const any = AbortSignal.any([...signals]);
  let stopWaiting = () => {};
  any.addEventListener('abort', () => stopWaiting(), { once: true });
  while (!any.aborted) {
    // Not a race with one promise of the end: each race would add a reaction to it until the stream ends.
    const { promise, resolve, reject } = Promise.withResolvers<IteratorResult<T> | undefined>();
    stopWaiting = () => resolve(undefined);
    iterator.next().then(resolve, reject);
    const next = await promise;
    if (next === undefined || next.done) return;
    yield next.value;
  }
}
