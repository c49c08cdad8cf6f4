#!/usr/bin/env node
import './program/module-resolution.ts';
import { runArtseal } from './cli/artseal.ts';

// Whoever read the output may be gone, as with `| head`: that is no failure of the command.
process.stdout.on('error', () => {});

process.exitCode = await runArtseal(process.argv.slice(2), {
  env: process.env,
  print: (line) => process.stdout.write(`${line}\n`),
  printError: (line) => process.stderr.write(`${line}\n`),
  ...(process.stderr.isTTY && { showProgress: (text: string) => process.stderr.write(`\r${text}\x1b[K`) }),
});
