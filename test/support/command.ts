import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { artsealCommand, projectFolder } from './artseal-command.ts';
import { anyAddresses } from './free-address.ts';

/** How a command ended. */
export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The environment of a command: that of the test without settings of its own, a free port for metrics, and these. */
function environment(env: Record<string, string>): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('ARTSEAL_') && name !== 'NODE_TEST_CONTEXT',
  );
  return {
    ...Object.fromEntries(inherited),
    ARTSEAL_METRICS_ADDR: anyAddresses.ARTSEAL_METRICS_ADDR,
    ...env,
  };
}

/** Runs `artseal` to its end. */
export async function runCommand(
  words: readonly string[],
  env: Record<string, string>,
  input = '',
): Promise<CommandResult> {
  const child = spawn(...artsealCommand(words), { env: environment(env), cwd: projectFolder });
  child.stdin.end(input);
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  return { code, stdout, stderr };
}

/** `artseal serve` in a process of its own. */
export interface ServeProcess {
  readonly child: ChildProcess;
  readonly publicUrl: string;
  readonly internalUrl: string;
  /** All of standard output up to and including the ready line. */
  readonly greeting: string;
  /** Sends a signal and waits for the end; the exit code, null after a kill. */
  stop(signal: NodeJS.Signals): Promise<number | null>;
}

/** Starts `artseal serve` on free ports and waits until it is ready; killed after the test. */
export async function serveCommand(
  test: Pick<TestContext, 'after'>,
  env: Record<string, string>,
): Promise<ServeProcess> {
  const child = spawn(...artsealCommand(['serve']), {
    env: environment({ ...anyAddresses, ...env }),
    cwd: projectFolder,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  test.after(() => child.kill('SIGKILL'));
  const ended = once(child, 'close');
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += chunk;
  });
  let greeting = '';
  for await (const chunk of child.stdout) {
    greeting += chunk;
    const ready = /^artseal ready public=(\S+) internal=(\S+)(?: metrics=\S+)?$/m.exec(greeting);
    if (ready === null) continue;
    const [, publicUrl = '', internalUrl = ''] = ready;
    return {
      child,
      publicUrl,
      internalUrl,
      greeting,
      stop: async (signal) => {
        child.kill(signal);
        const [code] = await ended;
        return code;
      },
    };
  }
  throw new Error(`artseal serve ended before it was ready: ${errors}`);
}
