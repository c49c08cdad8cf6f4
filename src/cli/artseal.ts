import { ConfigError } from '../config/settings.ts';
import { quotaRules } from '../domain/caller.ts';
import { ApiError, reasons } from '../domain/reason.ts';
import { sentences, ValidationError, type Violation } from '../domain/violation.ts';
import { FilesExposed } from '../lib/file-access.ts';
import { fileErrorText } from '../lib/file-errors.ts';
import {
  type Action,
  type CommandGroup,
  exitCodes,
  nameOf,
  readWords,
  type Terminal,
  UsageError,
  wordOf,
} from './command.ts';
import { loadCommand, loadTasks } from './commands.ts';
import { helpFor, listing, noCommand, overview, versionLine } from './help.ts';

/** Names of fields on the command line that are not the field's own name, such as `--tier` and `KEY_ID`. */
const fieldNames: Readonly<Record<string, string>> = {
  caller: 'NAME',
  appointmentAt: '--at',
  expiresAt: '--expires',
  expiresInSeconds: '--expires-in',
  overlapSeconds: '--overlap',
  partyId: '--id',
};

/** Rules that read otherwise on the command line, where one flag stands for two fields. */
const ownRules: Readonly<Record<string, string>> = {
  [quotaRules.missing]: 'N|unlimited is required for ENTERPRISE',
  [quotaRules.outOfBounds]: `must be unlimited or an integer from 1 to ${Number.MAX_SAFE_INTEGER}`,
};

/** Runs `artseal` with these arguments. Returns the exit code. */
export async function runArtseal([name, ...words]: string[], terminal: Terminal): Promise<number> {
  if (name === undefined) return done(terminal, ...overview(await loadTasks()));
  if (name === '--version') return done(terminal, versionLine);
  if (name === '--help' || name === '-h') return done(terminal, ...listing(await loadTasks()));
  const command = await loadCommand(name);
  if (command === undefined) return fail(terminal, exitCodes.usage, noCommand(name));
  if (words.some((word) => word === '--help' || word === '-h')) {
    return done(terminal, ...helpFor(name, command));
  }
  return 'actions' in command
    ? runOneOf(name, command, words, terminal)
    : run(name, command, words, terminal);
}

function runOneOf(
  name: string,
  group: CommandGroup,
  [word, ...rest]: string[],
  terminal: Terminal,
): number | Promise<number> {
  const action = group.actions.find((candidate) => wordOf(candidate) === word);
  if (action !== undefined) return run(name, action, rest, terminal);
  // A word of letters alone is an action that is spelled wrong, not the file of `backup FILE`.
  if (group.bare !== undefined && word !== undefined && !/^[a-z]+(-[a-z]+)*$/.test(word))
    return run(name, group.bare, [word, ...rest], terminal);
  const wrong = word === undefined ? '' : `, not '${word}'`;
  const file =
    group.bare === undefined
      ? ''
      : `${group.bare.usage.slice(name.length + 1).replace(/ \[.*/, '')} with a . or / in its name, or `;
  const message = `${name} needs ${file}one of ${group.actions.map(wordOf).join(', ')}${wrong}; see artseal ${name} --help`;
  return fail(terminal, exitCodes.usage, message);
}

async function run(name: string, action: Action, words: string[], terminal: Terminal): Promise<number> {
  try {
    const read = readWords(action, words);
    const show = (value: object, ...text: readonly string[]) =>
      done(terminal, ...(read.has('json') ? [JSON.stringify(value)] : text));
    return (await action.run(read, { ...terminal, show })) ?? exitCodes.done;
  } catch (error) {
    if (error instanceof UsageError) {
      const message = `${nameOf(action)} ${error.message}; see artseal ${name} --help`;
      return fail(terminal, exitCodes.usage, message);
    }
    if (error instanceof ConfigError) return fail(terminal, exitCodes.usage, ...error.faults);
    if (error instanceof FilesExposed) return fail(terminal, exitCodes.usage, error.message);
    return fail(terminal, exitCodes.failed, `${failureOf(error, action)}${whereToLook(name, error)}`);
  }
}

function done({ print }: Terminal, ...lines: readonly string[]): number {
  for (const line of lines) print(line);
  return exitCodes.done;
}

function fail({ printError }: Terminal, exitCode: number, ...messages: readonly string[]): number {
  for (const message of messages) printError(`artseal: ${message.replaceAll(/\s+/g, ' ')}`);
  return exitCode;
}

/** Says in one line what went wrong and what to do. */
function failureOf(error: unknown, { usage }: Action): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof ValidationError) {
    return `${error.reason}: ${sentences(
      error.violations.map((violation) => onCommandLine(violation, usage)),
      error.more,
    )}`;
  }
  const ofFile = fileErrorText(error);
  if (ofFile !== undefined) return ofFile;
  if (error instanceof ApiError) return `${error.reason}: ${error.message}`;
  const cause = fileErrorText(error.cause) ?? (error.cause instanceof Error ? error.cause.message : '');
  return error.message.includes(cause) ? error.message : `${error.message}: ${cause}`;
}

/** Names the argument of the usage line in place of the field: `--monthly-quota` for monthlyQuota, `KEY_ID` for keyId. */
function onCommandLine({ field, rule }: Violation, usage: string): Violation {
  const words = field.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`);
  const names = [fieldNames[field], `--${words}`, words.replaceAll('-', '_').toUpperCase()];
  const own = names.find((name) => name !== undefined && usage.includes(name));
  return { field: own ?? field, rule: ownRules[rule] ?? rule };
}

/** Says which command lists the ids or names, if one was not found. */
function whereToLook(name: string, error: unknown): string {
  const isUnknown = error instanceof ApiError && reasons[error.reason].http === 404;
  const field = error instanceof ValidationError ? error.violations[0]?.field : undefined;
  const isPlatform = field === 'caller' || field === 'platform';
  // It has no list command.
  if (name === 'evidence') return '';
  return isUnknown ? ` See artseal ${isPlatform ? 'platform' : name} list` : '';
}
