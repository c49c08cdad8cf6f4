/** One command of `artseal`. */
export interface Command {
  /** What follows `artseal` on the command line. */
  readonly usage: string;
  /** One line for the overview. */
  readonly summary: string;
  /** What a newcomer needs to know besides, a line each. */
  readonly details: readonly string[];
  /** Carries it out with the words behind its name; the exit code. */
  run(words: string[], terminal: Terminal): Promise<number>;
}

/** Where a command reads and writes. */
export interface Terminal {
  readonly env: NodeJS.ProcessEnv;
  /** Writes a line to standard output. */
  print(line: string): void;
}

/** What a command can do, by the word that follows it. */
export type Actions = ReadonlyMap<string, (words: string[], terminal: Terminal) => Promise<void>>;

/** Runs the action that the first word names. Throws UsageError. */
export async function runAction(actions: Actions, words: string[], terminal: Terminal): Promise<number> {
  const [name = '', ...rest] = words;
  const action = actions.get(name);
  if (action === undefined) throw new UsageError(`needs one of ${[...actions.keys()].join(', ')}`);
  await action(rest, terminal);
  return exitCodes.done;
}

/** The command line is wrong; the message says how to put it right. */
export class UsageError extends Error {
  override name = 'UsageError';
}

/** Exit codes: done; refused or failed; not understood. */
export const exitCodes = { done: 0, failed: 1, usage: 2 } as const;
