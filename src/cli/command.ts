/** One thing that `artseal` does. */
export interface Action {
  /** Its name, then what it takes, as the help shows it and `readWords` reads it. */
  readonly usage: string;
  /** What a newcomer needs to know besides, a line each. */
  readonly details: readonly string[];
  /** Carries it out; the exit code if that is not `done`. */
  run(words: Words, terminal: Terminal): Promise<number | undefined>;
}

/** A command that does one thing. */
export interface Command extends Action {
  /** One line for the overview. */
  readonly summary: string;
}

/** A command that does several things, chosen by the word behind it. */
export interface CommandGroup {
  readonly summary: string;
  readonly actions: readonly Action[];
  /** What it does when the word behind it chooses none of them. */
  readonly bare?: Action;
  /** What applies to all of them, a line each. */
  readonly details: readonly string[];
}

/** What was given to an action, by the names in its usage line: `KEY_ID` for a word, `overlap` for `--overlap`. */
export interface Words {
  /** What the usage line requires. */
  required(name: string): string;
  /** What it leaves open; undefined if it was not given. */
  text(name: string): string | undefined;
  /** All values of what may be given more than once, in order. */
  texts(name: string): readonly string[];
  /** Whether a flag without a value was given. */
  has(flag: string): boolean;
}

/** Where a command reads and writes. */
export interface Terminal {
  readonly env: NodeJS.ProcessEnv;
  /** Writes a line to standard output. */
  print(line: string): void;
  /** Writes a line to standard error. */
  printError(line: string): void;
  /** Shows how far the work is, in place of what it showed before; not there if nobody watches. */
  readonly showProgress?: (text: string) => void;
}

/** The command line is wrong; the message goes on after the name of the action and says how to put it right. */
export class UsageError extends Error {
  override name = 'UsageError';
}

/** Exit codes: done; refused or failed; not understood; something is to be done, which a check found. */
export const exitCodes = { done: 0, failed: 1, usage: 2, due: 3 } as const;
