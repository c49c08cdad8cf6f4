/** One thing that `artseal` does. */
export interface Action {
  /** The name and what it takes: shown by the help and read by `readWords`. */
  readonly usage: string;
  /** Lines of help. */
  readonly details: readonly string[];
  /** Runs the action. Returns the exit code if it is not `done`. */
  run(words: Words, terminal: Terminal): Promise<number | undefined>;
}

/** A command that does one thing. */
export interface Command extends Action {
  /** The line of the overview. */
  readonly summary: string;
}

/** A command with several actions, selected by the next word. */
export interface CommandGroup {
  readonly summary: string;
  readonly actions: readonly Action[];
  /** What the command does if the next word selects no action. */
  readonly bare?: Action;
  /** Lines of help for all actions. */
  readonly details: readonly string[];
}

/** The arguments of an action, by the names in its usage line: `KEY_ID` for a word, `overlap` for `--overlap`. */
export interface Words {
  /** An argument that the usage line requires. */
  required(name: string): string;
  /** An optional argument; undefined if it is missing. */
  text(name: string): string | undefined;
  /** All values of a repeatable flag, in order. */
  texts(name: string): readonly string[];
  /** Whether a flag is given. */
  has(flag: string): boolean;
}

/** Where a command reads and writes. */
export interface Terminal {
  readonly env: NodeJS.ProcessEnv;
  /** Writes a line to standard output. */
  print(line: string): void;
  /** Writes a line to standard error. */
  printError(line: string): void;
  /** Overwrites the progress line; only on a terminal. */
  readonly showProgress?: (text: string) => void;
}

/** The command line is wrong. The message follows the name of the action. */
export class UsageError extends Error {
  override name = 'UsageError';
}

/** Exit codes; `due` means that a check found something to do. */
export const exitCodes = { done: 0, failed: 1, usage: 2, due: 3 } as const;

/** Prints a value: as JSON with `--json`, otherwise as lines of text. */
export function show(words: Words, { print }: Terminal, value: object, ...text: readonly string[]): void {
  if (words.has('json')) print(JSON.stringify(value));
  else for (const line of text) print(line);
}

/** The members of an object as lines with aligned values; undefined and null members are left out. */
export function fieldLines(value: object, width: number): string[] {
  return Object.entries(value).flatMap(([name, text]) =>
    text === undefined || text === null ? [] : [`${name.padEnd(width)} ${text}`],
  );
}
