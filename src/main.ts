#!/usr/bin/env node
import './packaging/startup.ts';
import './packaging/module-resolution.ts';

const { runArtseal } = await import('./cli/artseal.ts');
const { printable } = await import('./cli/command.ts');

// The name in `ps` and `systemctl status`. It also hides the command line.
process.title = 'artseal';

// A reader such as `head` may close the pipe early. That is no error.
process.stdout.on('error', () => {});

process.exitCode = await runArtseal(process.argv.slice(2), {
  env: process.env,
  print: (line) => process.stdout.write(`${printable(line)}\n`),
  printError: (line) => process.stderr.write(`${printable(line)}\n`),
  ...(process.stderr.isTTY && { showProgress: (text: string) => process.stderr.write(`\r${text}\x1b[K`) }),
});
