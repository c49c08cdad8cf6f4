import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** How long a child may take to end before it is killed, in milliseconds. */
const endMs = 15_000;

const children = new Set<ChildProcess>();

/** Adds a child to those that end with the bench. */
export function adopt<C extends ChildProcess>(child: C): C {
  // A program that could not be started has no end to wait for.
  if (child.pid !== undefined) children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

/**
 * Sends a request to a forked child and waits for its response. Rejects if that is an error, if the child ends, and after
 * `limitMs`; `name` is the child's name in such an error.
 */
export async function ask<Request extends object, Response extends object>(
  child: ChildProcess,
  request: Request,
  name: string,
  limitMs: number,
): Promise<Exclude<Response, { readonly error: string }>> {
  const { promise, resolve, reject } = Promise.withResolvers<Response>();
  const ended = () => reject(new Error(`${name} ended.`));
  const hung = setTimeout(() => reject(new Error(`${name} did not get done.`)), limitMs);
  child.once('message', resolve);
  child.once('exit', ended);
  child.send(request);
  try {
    const response = await promise;
    if ('error' in response) throw new Error(String(response.error));
    return response as Exclude<Response, { readonly error: string }>;
  } finally {
    clearTimeout(hung);
    child.off('message', resolve);
    child.off('exit', ended);
  }
}

/** Responds to the requests of the parent process in a forked child, which ends with it. */
export function respondToParent<Request>(respond: (request: Request) => Promise<object>): void {
  process.on('message', (request: Request) => {
    respond(request).then(
      (response) => process.send?.(response),
      (error) => process.send?.({ error: error instanceof Error ? error.message : String(error) }),
    );
  });
  process.once('disconnect', () => process.exit());
}

/** Asks all children to end and waits until they have. */
export async function endChildren(): Promise<void> {
  await Promise.all(Array.from(children, endChild));
}

/** Asks a child to end and waits until it has. */
export async function endChild(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit');
  const force = setTimeout(() => child.kill('SIGKILL'), endMs);
  child.kill('SIGTERM');
  await exit;
  clearTimeout(force);
}

/** Kills all children at once, for an end that cannot wait. */
export function killChildren(): void {
  for (const child of children) child.kill('SIGKILL');
}
