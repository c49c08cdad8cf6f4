import { parseArgs } from 'node:util';
import { period } from '../config/values.ts';
import { createCalendar, instantOf } from '../domain/calendar.ts';
import { durationMs } from '../lib/timing.ts';
import { SettingError } from '../payments/provider.ts';

/** One thing that `artseal` does. */
export interface Action {
  /** The name and what it takes: shown by the help and read by `readWords`. */
  readonly usage: string;
  /** Lines of help. */
  readonly details: readonly string[];
  /** Flags that it shares with other actions; they follow the usage line. */
  readonly common?: CommonFlags;
  /** Runs the action. Returns the exit code if it is not `done`. */
  run(words: Words, terminal: Output): Promise<number | undefined>;
}

/** Optional flags that several actions take. Help and man page describe them once. */
export interface CommonFlags {
  /** As in a usage line: `[--flag VALUE] [--other]`. */
  readonly usage: string;
  /** Lines of help. */
  readonly details: readonly string[];
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

/** A task of an operator, with the commands for it by name. */
export interface Task {
  readonly title: string;
  readonly commands: ReadonlyMap<string, Command | CommandGroup>;
}

/** The actions of a command, the bare one first. */
export const actionsOf = (command: Command | CommandGroup): readonly Action[] => {
  if (!('actions' in command)) return [command];
  return command.bare === undefined ? command.actions : [command.bare, ...command.actions];
};

/** The name at the beginning of a usage line: `key rotate`. */
export const nameOf = ({ usage }: Action): string =>
  /^[a-z]+(-[a-z]+)*( [a-z]+(-[a-z]+)*)*/.exec(usage)?.[0] ?? usage;

/** The last word of the name: `rotate`. */
export const wordOf = (action: Action): string => nameOf(action).split(' ').at(-1) ?? '';

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

/** Where an action reads and writes. */
export interface Output extends Terminal {
  /** Prints a value: as JSON with `--json`, otherwise as lines of text. */
  show(value: object, ...text: readonly string[]): void;
}

/** The command line is wrong. The message follows the name of the action. */
export class UsageError extends Error {
  override name = 'UsageError';
}

/** Exit codes; `due` means that a check found something to do. */
export const exitCodes = { done: 0, failed: 1, usage: 2, due: 3 } as const;

/** The members of an object as lines with aligned values; undefined and null members are left out. */
export function fieldLines(value: object, width: number): string[] {
  return Object.entries(value).flatMap(([name, text]) =>
    text === undefined || text === null ? [] : [`${name.padEnd(width)} ${text}`],
  );
}

/** Characters that move the cursor, colour text or change its direction; not line ends and tabs. */
const unprintable = /(?!\n|\t|\r\n)[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/**
 * Makes untrusted text safe for a terminal: control and direction characters become escapes such as `\u202e`, which mean the
 * same in JSON.
 */
export function printable(text: string): string {
  return text.replaceAll(unprintable, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** A word or a flag of a usage line. */
export interface Part {
  readonly name: string;
  readonly isFlag: boolean;
  /** The name of the flag's value; undefined for a flag without one. */
  readonly value: string | undefined;
  readonly isRepeatable: boolean;
  readonly isRequired: boolean;
}

/** `[` if optional, then `--flag`, `--flag VALUE`, `--flag VALUE...` if repeatable, or `WORD`. */
const partPattern = /(\[?)(?:--([a-z-]+)(?: ([A-Z][^\s\].]*)(\.\.\.)?)?|([A-Z][A-Z_]*))/g;

const whyRequired: Readonly<Record<string, string>> = { reason: ' (the audit log keeps it)' };

/**
 * Reads the arguments of an action by its usage line, such as `key rotate KEY_ID [--overlap SECONDS] [--json]`. Throws
 * UsageError with all that is missing or unknown.
 */
export function readWords(action: Pick<Action, 'usage' | 'common'>, args: string[]): Words {
  const parts = partsOf(action);
  const { given, faults } = match(parts, args);
  for (const part of parts) {
    const isMissing = part.isFlag ? !given.has(part.name) : !given.get(part.name)?.[0];
    if (part.isRequired && isMissing) faults.push(`needs ${shown(part)}${whyRequired[part.name] ?? ''}`);
  }
  if (faults.length > 0) throw new UsageError(faults.join(' and '));
  return {
    required: (name) => {
      const value = given.get(name)?.[0];
      if (value === undefined) throw new Error(`'${action.usage}' does not require ${name}.`);
      return value;
    },
    text: (name) => given.get(name)?.[0],
    texts: (name) => given.get(name) ?? [],
    has: (flag) => given.has(flag),
  };
}

/** Assigns each argument to its part, and lists those that fit none. */
function match(parts: readonly Part[], args: string[]): { given: Map<string, string[]>; faults: string[] } {
  const flags = new Map(parts.filter(({ isFlag }) => isFlag).map((part) => [part.name, part]));
  const free = parts.filter(({ isFlag }) => !isFlag);
  const given = new Map<string, string[]>();
  const faults: string[] = [];
  const surplus: string[] = [];
  const options: Record<string, { type: 'boolean' | 'string' }> = {};
  for (const [name, { value }] of flags) options[name] = { type: value === undefined ? 'boolean' : 'string' };
  // Not strict: all faults are reported at once, in the words of the usage line.
  const { tokens } = parseArgs({ args, options, allowPositionals: true, strict: false, tokens: true });
  for (const token of tokens) {
    if (token.kind === 'option') {
      const fault = faultOf(token, flags.get(token.name), given.has(token.name));
      if (fault !== undefined) faults.push(fault);
      given.set(token.name, [...(given.get(token.name) ?? []), token.value ?? '']);
    } else if (token.kind === 'positional') {
      const part = free.shift();
      if (part === undefined) surplus.push(`'${token.value}'`);
      else given.set(part.name, [token.value]);
    }
  }
  if (surplus.length > 0) faults.push(`takes no ${surplus.join(', ')} (a value with spaces needs quotes)`);
  return { given, faults };
}

/** Reads a required flag as a setting is read. Throws UsageError. */
export function readRequired<Value>(words: Words, flag: string, read: (text: string) => Value): Value {
  const text = words.required(flag);
  try {
    return read(text);
  } catch (error) {
    if (!(error instanceof SettingError)) throw error;
    throw new UsageError(`--${flag} ${error.message}, not '${text}'`);
  }
}

/** The same for an optional flag; undefined without it. */
export const readFlag = <Value>(words: Words, flag: string, read: (text: string) => Value) =>
  words.has(flag) ? readRequired(words, flag, read) : undefined;

/** Reads a flag that takes a duration of at most `max`, in seconds; undefined without the flag. Throws UsageError. */
export function readDuration(words: Words, flag: string, max: string): number | undefined {
  const ms = readFlag(words, flag, period('0s', max));
  return ms === undefined ? undefined : ms / 1_000;
}

/** The number that a word says; -1, which the service rejects with the bounds, for any other word. */
export function numberOf(word: string): number {
  return /^\d+$/.test(word) && Number.isSafeInteger(Number(word)) ? Number(word) : -1;
}

/**
 * Reads a flag that takes a date (its start in the time zone), an RFC 3339 timestamp, or a duration before or after now.
 * Returns Unix seconds; undefined without the flag. Throws UsageError.
 */
export function readInstant(
  words: Words,
  flag: string,
  direction: 'BEFORE' | 'AFTER',
  timeZone: string,
): number | undefined {
  const text = words.text(flag);
  if (text === undefined) return undefined;
  const lengthS = durationMs(text) / 1_000;
  const nowS = Math.floor(Date.now() / 1_000);
  if (!Number.isNaN(lengthS)) return direction === 'AFTER' ? nowS + lengthS : nowS - lengthS;
  const atMs = createCalendar(timeZone).startOf(text) ?? instantOf(text);
  if (atMs === undefined) {
    const forms = '2026-11-21, 2026-11-21T09:15:00+08:00, 90m, 12h or 7d';
    throw new UsageError(`takes --${flag} as in ${forms}, not '${text}'`);
  }
  return Math.floor(atMs / 1_000);
}

/** Yields the first `limit` items; all if `limit` is undefined. */
export async function* firstOf<T>(items: AsyncIterable<T>, limit: number | undefined): AsyncGenerator<T> {
  let left = limit ?? Number.POSITIVE_INFINITY;
  for await (const item of items) {
    yield item;
    left -= 1;
    if (left <= 0) return;
  }
}

/** The words and flags that an action takes, with the common flags. */
export function partsOf({ usage, common }: Pick<Action, 'usage' | 'common'>): Part[] {
  return [...`${usage} ${common?.usage ?? ''}`.matchAll(partPattern)].map(
    ([, bracket, flag, value, dots, word = '']) => ({
      name: flag ?? word,
      isFlag: flag !== undefined,
      value,
      isRepeatable: dots !== undefined,
      // Flags without a value are choices, which the action checks.
      isRequired: bracket === '' && (flag === undefined || value !== undefined),
    }),
  );
}

/** An argument that parseArgs reads as a flag. */
interface FlagToken {
  readonly rawName: string;
  readonly value?: string | undefined;
  readonly inlineValue?: boolean | undefined;
}

function faultOf(
  { rawName, value, inlineValue }: FlagToken,
  flag: Part | undefined,
  isRepeated: boolean,
): string | undefined {
  if (flag === undefined) return `takes no ${rawName}`;
  if (isRepeated && !flag.isRepeatable) return `takes ${rawName} once`;
  if (flag.value === undefined) return value === undefined ? undefined : `takes ${rawName} without a value`;
  // parseArgs took the next flag for the value of this one.
  const isFlagLike = inlineValue !== true && value !== undefined && /^-./.test(value);
  return value === undefined || value === '' || isFlagLike
    ? `needs ${flag.value} after ${rawName}`
    : undefined;
}

/** A part in a sentence: `a KEY_ID`, `--name NAME`. */
function shown({ name, isFlag, value }: Part): string {
  if (isFlag) return `--${name} ${value}`;
  return `${/^[AEIOU]/.test(name) ? 'an' : 'a'} ${name}`;
}

/** The page about a server that does not respond. */
export const hangsPage = 'docs/operate/incidents/server-hangs.md';
