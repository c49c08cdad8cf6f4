import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manualPage } from '../../build/manual.ts';
import { actionsOf, type Command, type CommandGroup } from '../../src/cli/command.ts';
import { loadTasks } from '../../src/cli/commands.ts';
import { allSettings } from '../../src/config/config.ts';

/** The lines of the page for one group of commands, before the section that follows them. */
function linesFor(command: Command | CommandGroup): string[] {
  const page = manualPage([{ title: 'Work', commands: new Map([['work', command]]) }], '2026-11-24');
  return /^\.SS Work\n(.*)\n\.SH EXIT STATUS$/ms.exec(page)?.[1]?.split('\n') ?? [];
}

const run = async () => undefined;

test('the man page has every usage line and every setting in bold', async () => {
  const tasks = await loadTasks();
  const lines = new Set(manualPage(tasks, '2026-11-24').replaceAll('\\-', '-').split('\n'));
  const actions = tasks.flatMap(({ commands }) => [...commands.values()]).flatMap(actionsOf);
  assert.ok(actions.length > 20);
  for (const { usage } of actions) assert.ok(lines.has(`.B artseal ${usage.replaceAll('…', '...')}`), usage);
  for (const { variable } of allSettings) assert.ok(lines.has(`.B ${variable}`), variable);
});

test('help becomes paragraphs, entries of flags, and lines that stay', () => {
  const details = [
    'Works until it ends.',
    '--fast  does it',
    '        at once.',
    'It takes:',
    '  {"a": \'b\'}',
    '.Then it ends \\ ~.',
  ];
  assert.deepEqual(linesFor({ usage: 'work [--fast]', summary: 'work', details, run }), [
    ...['.PP', '.B artseal work [\\-\\-fast]', '.RS', 'Work.', 'Works until it ends.'],
    ...['.TP', '.B \\-\\-fast', 'does it', 'at once.'],
    ...['.PP', 'It takes:', '  {"a": \\(aqb\\(aq}'],
    ...['.PP', '\\&.Then it ends \\e \\(ti.', '.RE'],
  ]);
});

test('common flags are described once, with the actions that take them', () => {
  const common = { usage: '[--url URL]', details: ['--url  selects another server.'] };
  const actions = ['work begin', 'work end'].map((usage) => ({ usage, details: [], common, run }));
  const lines = linesFor({ summary: 'work', details: [], actions });
  assert.deepEqual(lines.slice(lines.indexOf('.SS Common flags')), [
    ...['.SS Common flags', '.PP', '.B [\\-\\-url URL]', '.RS'],
    ...['.TP', '.B \\-\\-url', 'selects another server.'],
    ...['.PP', 'Taken by work begin, work end.', '.RE'],
  ]);
});
