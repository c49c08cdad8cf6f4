import assert from 'node:assert/strict';
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { delimiter, dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { artsealCommand, executable, projectFolder } from './artseal-command.ts';
import { withDatabase } from './engine.ts';
import { anyAddresses } from './free-address.ts';

const binaries = [join(projectFolder, 'node_modules', '.bin'), ...(executable ? [dirname(executable)] : [])];
const readyLine = /^artseal ready public=(\S+) internal=(\S+)(?: metrics=(\S+))?$/m;

/** How long a command may take before it counts as hung, in milliseconds. */
const hungAfterMs = 60_000;

/** A running command and its output so far. */
export interface WatchedCommand {
  readonly child: ChildProcessWithoutNullStreams;
  stdout(): string;
  stderr(): string;
  /** The whole lines of its log that contain this text. */
  logLines(text?: string): readonly string[];
  /** The same, parsed. */
  // biome-ignore lint/suspicious/noExplicitAny: log lines have every shape.
  logged(text?: string): readonly any[];
  /** Waits for its end; the exit code, null if a signal ended it, HUNG if it had to be killed after `limitMs`. */
  end(limitMs?: number): Promise<number | null | 'HUNG'>;
}

/** A watched `artseal serve` that is ready. */
export interface WatchedService extends WatchedCommand {
  readonly publicUrl: string;
  readonly internalUrl: string;
  /** URL of its metrics. */
  readonly metricsUrl: string;
  /** Sends a signal and waits for the end, as `end` does. */
  stop(signal?: NodeJS.Signals, limitMs?: number): Promise<number | null | 'HUNG'>;
}

/** The environment of the test without its own settings, with the project's commands first in PATH, free ports for listeners, and `env`. */
export function commandEnvironment(env: Record<string, string>): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('ARTSEAL_') && name !== 'NODE_TEST_CONTEXT',
  );
  const path = [...binaries, process.env.PATH].join(delimiter);
  return {
    ...Object.fromEntries(inherited),
    PATH: path,
    ...anyAddresses,
    ...env,
  };
}

/** Starts a program; killed after the test. */
export function startProgram(
  test: Pick<TestContext, 'after'>,
  program: string,
  words: readonly string[],
  options: { readonly env: NodeJS.ProcessEnv; readonly cwd: string },
): WatchedCommand {
  const child = spawn(program, words, options);
  test.after(() => child.kill('SIGKILL'));
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk) => {
      output[name] += chunk;
    });
  }
  child.stdin.on('error', () => {});
  const ended = once(child, 'close').then(([code]) => code as number | null);
  const logLines = (text = '') =>
    output.stderr
      .split('\n')
      .slice(0, -1)
      .filter((line) => line.includes(text));
  return {
    child,
    stdout: () => output.stdout,
    stderr: () => output.stderr,
    logLines,
    logged: (text) => logLines(text).map((line) => JSON.parse(line)),
    end: async (limitMs = hungAfterMs) => {
      const timeout = new AbortController();
      const hung = delay(limitMs, 'HUNG' as const, { signal: timeout.signal }).catch(() => 'HUNG' as const);
      const end = await Promise.race([ended, hung]);
      timeout.abort();
      if (end === 'HUNG') child.kill('SIGKILL');
      return end;
    },
  };
}

/** Starts a program in the project's folder; killed after the test. */
const watch = (
  test: Pick<TestContext, 'after'>,
  program: string,
  words: readonly string[],
  env: Record<string, string>,
): WatchedCommand => startProgram(test, program, words, { env: commandEnvironment(env), cwd: projectFolder });

/** How a command ended; `code` is null after a signal. */
export interface BoundedResult {
  readonly code: number | null | 'HUNG';
  readonly stdout: string;
  readonly stderr: string;
}

/** For commands that are run to their end, which need no killing after the test. */
export const untilItsEnd = { after: () => {} };

/** Waits for the end of a command, or kills it after `limitMs`. */
export async function toItsEnd(
  command: WatchedCommand,
  input = '',
  limitMs?: number,
): Promise<BoundedResult> {
  command.child.stdin.end(input);
  const code = await command.end(limitMs);
  return { code, stdout: command.stdout(), stderr: command.stderr() };
}

/** Runs a shell script to its end, with `artseal`'s runtime on its PATH, or kills it after `limitMs`. */
export async function runShell(
  test: Pick<TestContext, 'after'>,
  script: string,
  env: Record<string, string> = {},
  limitMs?: number,
): Promise<BoundedResult> {
  return toItsEnd(watch(test, 'sh', ['-c', script], await withDatabase(env)), '', limitMs);
}

/** Runs `artseal` to its end. */
export async function runCommand(
  words: readonly string[],
  env: Record<string, string>,
  input = '',
): Promise<BoundedResult> {
  return toItsEnd(watch(untilItsEnd, ...artsealCommand(words), await withDatabase(env)), input);
}

/** Runs `artseal` to its end, or kills it after `limitMs`. */
export async function runBounded(
  test: Pick<TestContext, 'after'>,
  words: readonly string[],
  env: Record<string, string>,
  limitMs?: number,
): Promise<BoundedResult> {
  return toItsEnd(watch(test, ...artsealCommand(words), await withDatabase(env)), '', limitMs);
}

/**
 * Starts `artseal serve` and waits for its ready line. `launcher` has the words of a program that executes the
 * words after them, such as `nice`.
 */
export async function serveWatched(
  test: Pick<TestContext, 'after'>,
  env: Record<string, string>,
  launcher: readonly string[] = [],
): Promise<WatchedService> {
  const [program = '', ...words] = [...launcher, ...artsealCommand(['serve']).flat()];
  return whenReady(watch(test, program, words, await withDatabase(env)));
}

/** Waits for the ready line of a server. */
export async function whenReady(command: WatchedCommand): Promise<WatchedService> {
  const { child } = command;
  const [, publicUrl = '', internalUrl = '', metricsUrl = ''] = await new Promise<string[]>(
    (resolve, reject) => {
      child.stdout.on('data', () => {
        const ready = readyLine.exec(command.stdout());
        if (ready !== null) resolve(ready);
      });
      child.once('close', () => reject(new Error(`serve ended before it was ready: ${command.stderr()}`)));
    },
  );
  return {
    ...command,
    publicUrl,
    internalUrl,
    metricsUrl,
    stop: (signal = 'SIGTERM', limitMs) => {
      child.kill(signal);
      return command.end(limitMs);
    },
  };
}

/** Asserts that a command failed with one line and without a stack trace; a first line of its log may precede it. */
export function assertOneLine(result: BoundedResult, code: number, ...patterns: readonly RegExp[]): void {
  const { stdout } = result;
  const stderr = result.stderr.replace(/^\{.*"msg":"starting"\}\n/, '');
  assert.equal(result.code, code, `${stderr}${stdout}`);
  assert.match(stderr, /^artseal: [^\n]+\n$/);
  assert.doesNotMatch(stderr, /\bat \S+:\d+:\d+|node:internal|undefined|\[object /);
  assert.doesNotMatch(stdout, /artseal ready/);
  for (const pattern of patterns) assert.match(stderr, pattern);
}
