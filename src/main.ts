#!/usr/bin/env node
import './packaging/module-resolution.ts';
import { runArtseal } from './cli/artseal.ts';
import { printable } from './cli/printable.ts';

// `ps` and `systemctl status` show it. It hides the words of the command line, too.
process.title = 'artseal';

// Whoever read the output may be gone, as with `| head`: that is no failure of the command.
process.stdout.on('error', () => {});

process.exitCode = await runArtseal(process.argv.slice(2), {
  env: process.env,
  print: (line) => process.stdout.write(`${printable(line)}\n`),
  printError: (line) => process.stderr.write(`${printable(line)}\n`),
  ...(process.stderr.isTTY && { showProgress: (text: string) => process.stderr.write(`\r${text}\x1b[K`) }),
});
