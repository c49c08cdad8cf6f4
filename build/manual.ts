import { actionsOf, type Command, type CommandGroup, nameOf, type Task } from '../src/cli/command.ts';
import { loadTasks } from '../src/cli/commands.ts';
import { commonFlagsOf, exitCodesHelp, purpose } from '../src/cli/help.ts';
import { allSettings } from '../src/config/config.ts';
import { buildInfo } from '../src/packaging/build-info.ts';

// Prints the man page, made of usage lines, help and settings. Its date is that of SOURCE_DATE_EPOCH, or today.

if (import.meta.main) {
  const time = process.env.SOURCE_DATE_EPOCH;
  const date = time === undefined ? new Date() : new Date(Number(time) * 1_000);
  process.stdout.write(manualPage(await loadTasks(), date.toISOString().slice(0, 10)));
}

/** Returns a man page for these commands, in the macros of man(7). */
export function manualPage(tasks: readonly Task[], date: string): string {
  const lines = [
    `.TH ARTSEAL 1 ${date} "artseal ${buildInfo.version}" "User Commands"`,
    // Left-aligned, without hyphenation and wider spaces between sentences.
    ...['.ad l', '.nh', '.ss 12 0'],
    '.SH NAME',
    String.raw`artseal, artseal\-admin \- ${escaped(purpose)}`,
    '.SH SYNOPSIS',
    '.B artseal',
    'COMMAND [ACTION] [ARGUMENTS]',
    '.br',
    String.raw`.B artseal\-admin`,
    'COMMAND [ACTION] [ARGUMENTS]',
    '.SH DESCRIPTION',
    ...paragraphs([
      'artseal serves the registry, and has the commands to operate it.',
      'artseal-admin COMMAND runs artseal COMMAND as the user of artseal.service, with its settings, restrictions and data.',
    ]),
    '.SH COMMANDS',
    ...tasks.flatMap(({ title, commands }) => [
      `.SS ${escaped(title)}`,
      ...Array.from(commands.values(), described).flat(),
    ]),
    ...commonFlags(tasks),
    '.SH EXIT STATUS',
    ...paragraphs(exitCodesHelp),
    '.SH ENVIRONMENT',
    ...allSettings.flatMap(({ variable, meaning, fallback }) =>
      entry(variable, `${meaning}${fallback === '' ? '' : ` (${fallback})`}`),
    ),
    '.SH FILES',
    ...entry('/etc/artseal/artseal.env', 'settings of artseal.service'),
    ...entry('/var/lib/artseal', 'its data'),
    ...entry('/var/lib/artseal-backups', 'its backups'),
    '.SH SEE ALSO',
    escaped('/usr/share/doc/artseal/operate/README.md'),
  ];
  return `${lines.join('\n')}\n`;
}

/** A command: each usage line with its help, then the help for all actions. */
function described(command: Command | CommandGroup): string[] {
  const isGroup = 'actions' in command;
  const summary = `${command.summary.charAt(0).toUpperCase()}${command.summary.slice(1)}.`;
  const actions = actionsOf(command).flatMap(({ usage, details }) =>
    indented(`artseal ${usage}`, isGroup ? details : [summary, ...details]),
  );
  return isGroup && command.details.length > 0
    ? [...actions, '.PP', ...paragraphs(command.details)]
    : actions;
}

function commonFlags(tasks: readonly Task[]): string[] {
  const found = commonFlagsOf(tasks.flatMap(({ commands }) => [...commands.values()]));
  return Array.from(found, ([{ usage, details }, actions]) => [
    '.SS Common flags',
    ...indented(usage, [...details, `Taken by ${actions.map(nameOf).join(', ')}.`]),
  ]).flat();
}

/** A usage line in bold, with lines of help below it. */
function indented(usage: string, help: readonly string[]): string[] {
  return ['.PP', `.B ${escaped(usage)}`, '.RS', ...paragraphs(help), '.RE'];
}

function entry(name: string, text: string): string[] {
  return ['.TP', `.B ${escaped(name)}`, escaped(text)];
}

/**
 * Lines of help as paragraphs: `--flag  text` begins an entry, which deeply indented lines continue. Other indented lines
 * stay lines.
 */
function paragraphs(help: readonly string[]): string[] {
  const lines: string[] = [];
  let last = 'text';
  for (const line of help) {
    const [, flag, text = ''] = /^(--.*?) {2,}(.*)$/.exec(line) ?? [];
    const isContinued = last === 'entry' && line.startsWith('   ');
    const kind = flag !== undefined || isContinued ? 'entry' : line.startsWith(' ') ? 'line' : 'text';
    if (kind === 'text' && last !== 'text') lines.push('.PP');
    // roff begins a line where spaces begin one.
    lines.push(...(flag !== undefined ? entry(flag, text) : [escaped(isContinued ? line.trim() : line)]));
    last = kind;
  }
  return lines;
}

/** A text that roff prints as it is. */
function escaped(text: string): string {
  const special: Readonly<Record<string, string>> = {
    '\\': 'e',
    '-': '-',
    "'": '(aq',
    '`': '(ga',
    '^': '(ha',
    '~': '(ti',
  };
  return text
    .replaceAll('…', '...')
    .replaceAll(/[\\'`^~-]/g, (found) => `\\${special[found]}`)
    .replaceAll(
      /[^ -~]/gu,
      (found) => `\\[u${found.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}]`,
    )
    .replace(/^\./, '\\&.');
}
