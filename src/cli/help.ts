import { allSettings } from '../config/config.ts';
import { buildInfo } from '../packaging/build-info.ts';
import {
  type Action,
  actionsOf,
  type Command,
  type CommandGroup,
  type CommonFlags,
  exitCodes,
  type Task,
  wordOf,
} from './command.ts';

/** What `artseal` is, in one line. */
export const purpose = 'a registry that files artworks, proves their provenance, and sells them in escrow';

const usage = 'Usage: artseal COMMAND [ACTION] [ARGUMENTS]';

/** Exit codes that commands have unless their help lists others. */
export const exitCodesHelp: readonly string[] = [
  'Exit codes: 0 done, 1 failed, 2 the command line or a setting is wrong, 3 there is something to do.',
  'verify and log audit have more: see their --help.',
];

/** The message for a command that does not exist. */
export const noCommand = (name: string): string => `there is no command '${name}'; artseal --help lists them`;

/** What `artseal --version` prints. */
export const versionLine: string = `artseal ${buildInfo.version}${buildInfo.commit === undefined ? '' : ` (${buildInfo.commit})`}`;

/** What `artseal` prints without arguments: the names of the commands by task, on at most 30 lines. */
export function overview(tasks: readonly Task[]): string[] {
  const width = Math.max(...tasks.map(({ title }) => title.length));
  return [
    `artseal: ${purpose}.`,
    '',
    usage,
    '',
    ...tasks.map(({ title, commands }) => `  ${title.padEnd(width)}  ${[...commands.keys()].join(', ')}`),
    '',
    'artseal help           what each command does',
    'artseal help COMMAND   its actions and flags, as artseal COMMAND --help',
    'artseal help settings  the settings (environment variables)',
    'artseal --version      the version',
  ];
}

/** What `artseal --help` prints: a line for each command, by task. */
export function listing(tasks: readonly Task[]): string[] {
  const width = Math.max(
    ...tasks.flatMap(({ commands }) => Array.from(commands.keys(), (name) => name.length)),
  );
  return [
    `artseal: ${purpose}.`,
    '',
    usage,
    ...tasks.flatMap(({ title, commands }) => [
      '',
      `${title}:`,
      ...Array.from(commands, ([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`),
    ]),
    '',
    'artseal help COMMAND lists the actions and flags of a command, artseal help settings the settings (environment variables),',
    'artseal --version the version.',
    ...exitCodesHelp,
  ];
}

function settingLines(): string[] {
  const width = Math.max(...allSettings.map(({ variable }) => variable.length));
  return allSettings.map(
    ({ variable, fallback, meaning }) =>
      `${variable.padEnd(width)} ${meaning}${fallback === '' ? '' : ` (${fallback})`}`,
  );
}

/** What `artseal COMMAND --help` prints. */
export function helpFor(name: string, command: Command | CommandGroup): string[] {
  const lines = [`artseal ${summaryUsage(name, command)}`, `    ${command.summary}`, ''];
  if ('actions' in command) {
    for (const { usage, details } of actionsOf(command)) {
      lines.push(usage, ...details.map((line) => `    ${line}`));
    }
  }
  lines.push(...command.details);
  for (const { usage, details } of commonFlagsOf([command]).keys()) {
    lines.push(`Common flags: ${usage}`, ...details.map((line) => `    ${line}`));
  }
  return lines;
}

/** The common flags of these commands, each with the actions that take them. */
export function commonFlagsOf(commands: readonly (Command | CommandGroup)[]): Map<CommonFlags, Action[]> {
  const found = new Map<CommonFlags, Action[]>();
  for (const action of commands.flatMap(actionsOf)) {
    if (action.common !== undefined) found.set(action.common, [...(found.get(action.common) ?? []), action]);
  }
  return found;
}

function summaryUsage(name: string, command: Command | CommandGroup): string {
  if (!('actions' in command)) return command.usage;
  const words = command.actions.map(wordOf).join('|');
  return command.bare === undefined ? `${name} ${words}` : `${command.bare.usage}, ${name} ${words}`;
}

/** `artseal help` */
export function createHelp(loadTasks: () => Promise<readonly Task[]>): Command {
  return {
    usage: 'help [COMMAND] [ACTION]',
    summary: 'list the commands, describe one, or list the settings (help settings)',
    details: ['With a COMMAND, prints what artseal COMMAND --help prints: the help of all its actions.'],
    run: async (words, { print, printError }) => {
      const name = words.text('COMMAND');
      const lines = helpOn(await loadTasks(), name);
      for (const line of lines ?? []) print(line);
      if (lines !== undefined) return undefined;
      printError(`artseal: ${noCommand(`${name}`)}`);
      return exitCodes.usage;
    },
  };
}

function helpOn(tasks: readonly Task[], name: string | undefined): readonly string[] | undefined {
  if (name === undefined) return listing(tasks);
  if (name === 'settings') return settingLines();
  const command = tasks.map(({ commands }) => commands.get(name)).find((found) => found !== undefined);
  return command && helpFor(name, command);
}
