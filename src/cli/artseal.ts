import { allSettings } from '../config/config.ts';
import { ConfigError } from '../config/settings.ts';
import { quotaRules } from '../domain/caller.ts';
import { ApiError, reasons } from '../domain/reason.ts';
import { sentences, ValidationError, type Violation } from '../domain/violation.ts';
import { FilesExposed } from '../lib/file-access.ts';
import { fileErrorText } from '../lib/file-errors.ts';
import { buildInfo } from '../packaging/build-info.ts';
import {
  type Action,
  type Command,
  type CommandGroup,
  exitCodes,
  readWords,
  type Terminal,
  UsageError,
} from './command.ts';

/** The commands. Each is loaded when it is needed. */
const commands = new Map<string, () => Promise<Command | CommandGroup>>([
  ['init', async () => (await import('./deployment.ts')).init],
  ['serve', async () => (await import('./serve.ts')).serve],
  ['check', async () => (await import('./deployment.ts')).check],
  ['ready', async () => (await import('./client-commands.ts')).ready],
  ['backup', async () => (await import('./backup.ts')).backup],
  ['restore', async () => (await import('./backup.ts')).restore],
  ['upgrade', async () => (await import('./deployment.ts')).upgrade],
  ['platform', async () => (await import('./platform.ts')).platform],
  ['party', async () => (await import('./party.ts')).party],
  ['key', async () => (await import('./key.ts')).key],
  ['token', async () => (await import('./token.ts')).token],
  ['secrets', async () => (await import('./secrets.ts')).secrets],
  ['escrow', async () => (await import('./escrow.ts')).escrow],
  ['events', async () => (await import('./events.ts')).events],
  ['webhooks', async () => (await import('./webhooks.ts')).webhooks],
  ['evidence', async () => (await import('./evidence.ts')).evidence],
  ['retention', async () => (await import('./retention.ts')).retention],
  ['clock', async () => (await import('./clock.ts')).clock],
  ['audit-log', async () => (await import('./audit-log.ts')).auditLog],
  ['sign', async () => (await import('./client-commands.ts')).sign],
  ['call', async () => (await import('./client-commands.ts')).call],
  ['verify', async () => (await import('./verify.ts')).verify],
  ['log', async () => (await import('./log-audit.ts')).log],
  ['demo', async () => (await import('./client-commands.ts')).demo],
  ['licenses', async () => (await import('./deployment.ts')).licenses],
]);

/** Names of fields on the command line that are not the field's own name, such as `--tier` and `KEY_ID`. */
const fieldNames: Readonly<Record<string, string>> = {
  caller: 'NAME',
  overlapSeconds: '--overlap',
  partyId: '--id',
};

/** Rules that read otherwise on the command line, where one flag stands for two fields. */
const ownRules: Readonly<Record<string, string>> = {
  [quotaRules.missing]: 'N|unlimited is required for ENTERPRISE',
  [quotaRules.outOfBounds]: `must be unlimited or an integer from 1 to ${Number.MAX_SAFE_INTEGER}`,
};

/** Runs `artseal` with these arguments. Returns the exit code. */
export async function runArtseal([name = '--help', ...words]: string[], terminal: Terminal): Promise<number> {
  if (name === '--version')
    return done(
      terminal,
      `artseal ${buildInfo.version}${buildInfo.commit === undefined ? '' : ` (${buildInfo.commit})`}`,
    );
  if (name === 'help' && words[0] !== undefined) return runArtseal([words[0], '--help'], terminal);
  if (['help', '--help', '-h'].includes(name)) return done(terminal, ...(await overview()));
  const command = await commands.get(name)?.();
  if (command === undefined) {
    return fail(terminal, exitCodes.usage, `there is no command '${name}'; artseal --help lists them`);
  }
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
  if (group.bare !== undefined && word !== undefined) return run(name, group.bare, [word, ...rest], terminal);
  const wrong = word === undefined ? '' : `, not '${word}'`;
  const file = group.bare === undefined ? '' : `${group.bare.usage.slice(name.length + 1)}, or `;
  const message = `${name} needs ${file}one of ${group.actions.map(wordOf).join(', ')}${wrong}; see artseal ${name} --help`;
  return fail(terminal, exitCodes.usage, message);
}

async function run(name: string, action: Action, words: string[], terminal: Terminal): Promise<number> {
  try {
    return (await action.run(readWords(action.usage, words), terminal)) ?? exitCodes.done;
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

/** The name at the beginning of a usage line: `key rotate`. */
const nameOf = ({ usage }: Action): string =>
  /^[a-z]+(-[a-z]+)*( [a-z]+(-[a-z]+)*)*/.exec(usage)?.[0] ?? usage;

/** The last word of the name: `rotate`. */
const wordOf = (action: Action): string => nameOf(action).split(' ').at(-1) ?? '';

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
  const isPlatform = error instanceof ValidationError && error.violations[0]?.field === 'caller';
  // It has no list command.
  if (name === 'evidence') return '';
  return isUnknown ? ` See artseal ${isPlatform ? 'platform' : name} list` : '';
}

async function overview(): Promise<string[]> {
  const lines = [
    'artseal: a registry that files artworks, proves their provenance, and sells them in escrow.',
    '',
    'Commands (for details: artseal COMMAND --help; for the version: artseal --version):',
  ];
  for (const [name, load] of commands) {
    const command = await load();
    lines.push(`  ${usageOf(name, command).padEnd(50)} ${command.summary}`);
  }
  lines.push('', 'Settings (environment variables):');
  const width = Math.max(...allSettings.map(({ variable }) => variable.length));
  for (const { variable, fallback, meaning } of allSettings) {
    lines.push(`  ${variable.padEnd(width)} ${meaning}${fallback === '' ? '' : ` (${fallback})`}`);
  }
  lines.push(
    '',
    'Exit codes: 0 done, 1 failed, 2 the command line or a setting is wrong, 3 there is something to do.',
    'verify and log audit have more: see their --help.',
  );
  return lines;
}

function helpFor(name: string, command: Command | CommandGroup): string[] {
  const lines = [`artseal ${usageOf(name, command)}`, `    ${command.summary}`, ''];
  if ('actions' in command) {
    for (const { usage, details } of actionsOf(command)) {
      lines.push(usage, ...details.map((line) => `    ${line}`));
    }
  }
  return [...lines, ...command.details];
}

function usageOf(name: string, command: Command | CommandGroup): string {
  if (!('actions' in command)) return command.usage;
  const words = command.actions.map(wordOf).join('|');
  return command.bare === undefined ? `${name} ${words}` : `${command.bare.usage}, ${name} ${words}`;
}

const actionsOf = ({ bare, actions }: CommandGroup): readonly Action[] =>
  bare === undefined ? actions : [bare, ...actions];
