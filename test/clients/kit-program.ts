import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';

/** How a kit calls: what its clients are made with. */
export interface Access {
  readonly url: string;
  readonly apiKey: string;
  readonly apiSecret: string;
  /** How far the clock of the client is ahead of that of the machine. */
  readonly clockOffsetS?: number;
  readonly timeoutS?: number;
}

/** The error of a kit. */
export interface KitError {
  readonly code: string;
  readonly message: string;
  readonly status: number;
  readonly requestId: string | null;
  readonly help: string | null;
}

/** What a program prints of a step. */
export interface StepResult {
  readonly ok?: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: each step has another result.
  readonly result?: any;
  readonly error?: KitError;
  /** The kit does not have this. */
  readonly unsupported?: true;
}

/** A running program that makes the calls of a kit. */
export interface KitProgram {
  /** Runs a step. Rejects if the program ends. */
  run(step: string, values: object): Promise<StepResult>;
}

/** Starts the program of a kit: it reads a step as a line of JSON, and prints its result as one. */
export function startKitProgram(
  t: Pick<TestContext, 'after'>,
  [program = '', ...words]: readonly string[],
  env: NodeJS.ProcessEnv,
): KitProgram {
  const child = spawn(program, words, { env, stdio: ['pipe', 'pipe', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    errors += chunk;
  });
  child.stdin.on('error', () => {});
  const ended = once(child, 'close');
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    run: async (step, values) => {
      child.stdin.write(`${JSON.stringify({ step, ...values })}\n`);
      const { value, done } = await lines.next();
      if (!done) return JSON.parse(value);
      const [code] = await ended;
      throw new Error(`${program} ended with ${code} in the step ${step}: ${errors}`);
    },
  };
}
