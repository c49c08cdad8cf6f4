#!/usr/bin/env node
import './module-resolution.ts';
import { type Command, exitCodes, type Terminal, UsageError } from './cli/command.ts';
import { ConfigRefused, settings } from './config.ts';
import { Refusal } from './domain/reason.ts';

/** The commands, each loaded when it is needed: signing a request needs no database. */
const commands = new Map<string, () => Promise<Command>>([
  ['serve', async () => (await import('./cli/serve.ts')).serve],
  ['key', async () => (await import('./cli/key.ts')).key],
  ['token', async () => (await import('./cli/token.ts')).token],
  ['escrow', async () => (await import('./cli/escrow.ts')).escrow],
  ['sign', async () => (await import('./cli/sign.ts')).sign],
  ['call', async () => (await import('./cli/call.ts')).call],
  ['demo', async () => (await import('./cli/demo.ts')).demo],
]);

/** Runs `artseal` with these words; the exit code. */
async function main([name = '--help', ...words]: string[], terminal: Terminal): Promise<number> {
  const command = await commands.get(name)?.();
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
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : '';
  return `${error.message}${cause}`;
}

async function help({ print }: Terminal): Promise<number> {
  print('artseal: files artworks, answers their provenance, and sells them in escrow.\n');
  print('Commands (artseal COMMAND --help tells more):');
  for (const load of commands.values()) {
    const { usage, summary } = await load();
    print(`  ${usage.padEnd(46)} ${summary}`);
  }
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
