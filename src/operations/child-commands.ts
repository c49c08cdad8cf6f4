import { type ChildProcess, spawn } from 'node:child_process';
import { addAbortListener, once } from 'node:events';
import { setPriority } from 'node:os';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { ApiError } from '../domain/reason.ts';
import { createKeyedLimit } from '../lib/concurrency.ts';
import { ownCommand } from '../packaging/packaged-files.ts';

/** A command of this program: the words after `artseal`, and its environment. */
export interface ChildCommand {
  readonly words: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

/** How long one command may take, in milliseconds: six hours. */
const limitMs = 6 * 3_600_000;
/** How long a command may clean up when the server stops, in milliseconds. */
const cleanUpMs = 1_000;
/** `Retry-After` while another command runs, in seconds. */
const retryAfterS = 10;
/** Lower priority than the service. */
const niceness = 10;
/** The one key of the limit: all commands share it. */
const everything = 'ALL';

/**
 * Runs commands that read and hash much in processes of their own, one at a time, so that neither the work nor a slow disk
 * blocks a thread of the server.
 */
export type ChildCommands = ReturnType<typeof createChildCommands>;

export function createChildCommands(program: readonly string[] = ownCommand()) {
  const limit = createKeyedLimit<typeof everything>({ perKey: 1 });
  const stopping = new AbortController();

  async function* output(command: ChildCommand, signal: AbortSignal, leave: () => void) {
    try {
      yield* outputOf(program, command, signal, stopping.signal);
    } finally {
      leave();
    }
  }

  return {
    /**
     * Runs a command and yields the JSON values that it prints, one a line. If `signal` is aborted, the command removes its
     * unfinished files and the generator ends. Throws RATE_LIMITED while another command runs, and an Error with the command's
     * own words if it prints no result.
     */
    run: async function* (command: ChildCommand, signal: AbortSignal): AsyncGenerator<object, void> {
      const leave = limit.tryTake(everything);
      if (leave === undefined) throw busy();
      yield* output(command, signal, leave);
    },
    /** The same, but waits until no other command runs. */
    runInTurn: async function* (command: ChildCommand, signal: AbortSignal): AsyncGenerator<object, void> {
      let giveUp = () => {};
      const turn = limit.take(everything, (leaveQueue) => {
        giveUp = leaveQueue;
      });
      const leave = await Promise.race([turn, aborted(signal)]);
      if (leave === undefined) return giveUp();
      yield* output(command, signal, leave);
    },
    /** Ends the command that runs. */
    stop: async () => {
      stopping.abort();
      await limit.idle();
    },
  };
}

function busy(): ApiError {
  const message = 'A backup, its verification or a check is running: try again when it has ended.';
  return new ApiError('RATE_LIMITED', message, { retryAfterS });
}

/** Resolves when a signal is aborted. */
async function aborted(signal: AbortSignal): Promise<undefined> {
  if (!signal.aborted) await once(signal, 'abort');
}

async function* outputOf(
  [program = '', ...before]: readonly string[],
  { words, env }: ChildCommand,
  cancelled: AbortSignal,
  stopping: AbortSignal,
): AsyncGenerator<object, void> {
  const signal = AbortSignal.any([cancelled, stopping]);
  if (signal.aborted) return;
  const child = spawn(program, [...before, ...words], {
    ...{ env, timeout: limitMs, stdio: ['ignore', 'pipe', 'pipe'] },
  });
  const ended = Promise.all([text(child.stderr), once(child, 'close')]);
  // The loop below may still read when the child fails to start.
  ended.catch(() => {});
  let force: NodeJS.Timeout | undefined;
  using _end = addAbortListener(signal, () => child.kill());
  using _force = addAbortListener(stopping, () => {
    force = setTimeout(() => child.kill('SIGKILL'), cleanUpMs);
  });
  try {
    lower(child);
    let hasResult = false;
    for await (const line of createInterface({ input: child.stdout })) {
      const value = JSON.parse(line);
      hasResult ||= !('progress' in value);
      yield value;
    }
    const [errors, [code, killedBy]] = await ended;
    if (signal.aborted || (hasResult && killedBy === null)) return;
    throw new Error(messageIn(errors) || `artseal ${words[0]} ended with ${code ?? killedBy}`);
  } finally {
    // A child that waits until somebody reads its output would not handle the signal.
    child.stdout.destroy();
    if (child.exitCode === null) child.kill();
    await ended.catch(() => {});
    clearTimeout(force);
  }
}

/** What a command wrote to standard error, without its name. */
const messageIn = (errors: string): string => errors.trim().replaceAll(/^artseal: /gm, '');

function lower({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) setPriority(pid, niceness);
  } catch {
    // The child has ended already, or the system has no priorities.
  }
}
