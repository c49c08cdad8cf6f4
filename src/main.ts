#!/usr/bin/env node
import { call } from './cli/call.ts';
import { type Command, exitCodes, type Terminal, UsageError } from './cli/command.ts';
import { demo } from './cli/demo.ts';
import { key } from './cli/key.ts';
import { serve } from './cli/serve.ts';
import { sign } from './cli/sign.ts';
import { token } from './cli/token.ts';
import { ConfigRefused, settings } from './config.ts';
import { Refusal } from './domain/reason.ts';
import { DatabaseRefused } from './store/sqlite/database.ts';

const commands = new Map<string, Command>(Object.entries({ serve, key, token, sign, call, demo }));

/** Runs `artseal` with these words; the exit code. */
async function main([name = '--help', ...words]: string[], terminal: Terminal): Promise<number> {
  const command = commands.get(name);
  if (command === undefined) {
    if (['help', '--help', '-h'].includes(name)) return help(terminal);
    return fail(`there is no command '${name}'; artseal --help lists them`, exitCodes.usage);
  }
  if (words.some((word) => word === '--help' || word === '-h')) return helpFor(command, terminal);
  try {
    return await command.run(words, terminal);
  } catch (error) {
    if (error instanceof UsageError)
      return fail(`${name} ${error.message}; see artseal ${name} --help`, exitCodes.usage);
    if (error instanceof ConfigRefused) return fail(error.message, exitCodes.usage);
    return fail(failureOf(error), exitCodes.failed);
  }
}

function fail(message: string, exitCode: number): number {
  process.stderr.write(`artseal: ${message}\n`);
  return exitCode;
}

/** One line for what went wrong, that says what to do. */
function failureOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof Refusal) return `${error.reason}: ${error.message}`;
  if (error instanceof DatabaseRefused) return error.message;
  const code = 'code' in error ? String(error.code) : '';
  if (code === 'EADDRINUSE') {
    const { address, port } = error as NodeJS.ErrnoException & { address?: string; port?: number };
    return `${address}:${port} is in use; stop what listens there or set ${settings.publicAddress.variable} or ${settings.internalAddress.variable}.`;
  }
  if (code === 'EACCES' || code === 'EROFS' || code === 'ENOTDIR' || code.startsWith('SQLITE_CANTOPEN')) {
    return `${error.message}: the folder ${settings.dataDir.variable} must be one that this user can write.`;
  }
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : '';
  return `${error.message}${cause}`;
}

function help({ print }: Terminal): number {
  print('artseal: files artworks, answers their provenance, and sells them in escrow.\n');
  print('Commands (artseal COMMAND --help tells more):');
  for (const { usage, summary } of commands.values()) print(`  ${usage.padEnd(46)} ${summary}`);
  print('\nSettings, from the environment:');
  for (const { variable, fallback, meaning } of Object.values(settings)) {
    print(`  ${variable.padEnd(28)} ${meaning}${fallback === '' ? '' : ` (${fallback})`}`);
  }
  print('\nExit codes: 0 done, 1 refused or failed, 2 the command line or a setting is wrong.');
  return exitCodes.done;
}

function helpFor({ usage, summary, details }: Command, { print }: Terminal): number {
  print(`artseal ${usage}\n    ${summary}\n`);
  for (const line of details) print(line);
  return exitCodes.done;
}

// Whoever read the output may be gone, as with `| head`: that is no failure of the command.
process.stdout.on('error', () => {});

process.exitCode = await main(process.argv.slice(2), {
  env: process.env,
  print: (line) => process.stdout.write(`${line}\n`),
});
