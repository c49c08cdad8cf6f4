import assert from 'node:assert/strict';
import { runArtseal } from '../../src/cli/artseal.ts';
import { withDatabase } from './engine.ts';

/** How a command ended, by the lines that it wrote. */
export interface ArtsealResult {
  readonly code: number;
  readonly printed: readonly string[];
  readonly errors: readonly string[];
}

/** Runs `artseal` in this process. */
export async function runHere(words: readonly string[], env: Record<string, string>): Promise<ArtsealResult> {
  const printed: string[] = [];
  const errors: string[] = [];
  const code = await runArtseal([...words], {
    env: await withDatabase(env),
    print: (line) => printed.push(line),
    printError: (line) => errors.push(line),
  });
  return { code, printed, errors };
}

/** The words of a command line: as a list, or as a text with a space between any two. */
export type CommandLine = string | readonly string[];

const wordsOf = (line: CommandLine): readonly string[] => (typeof line === 'string' ? line.split(' ') : line);

/** Runs `artseal` in this process with these settings. `common` are words that every command gets. */
export function artsealWith(env: Record<string, string>, common: readonly string[] = []) {
  /** Runs a command that must exit with 0 and report nothing; returns its lines. */
  const lines = async (line: CommandLine): Promise<readonly string[]> => {
    const { code, printed, errors } = await runHere([...wordsOf(line), ...common], env);
    assert.deepEqual([code, errors], [0, []], `artseal ${line}`);
    return printed;
  };
  return {
    lines,
    text: async (line: CommandLine) => (await lines(line)).join('\n'),
    /** The values that the command prints with `--json`. */
    list: async (line: CommandLine) =>
      (await lines([...wordsOf(line), '--json'])).map((value) => JSON.parse(value)),
    /** The one value that the command prints with `--json`. */
    json: async (line: CommandLine) => {
      const [value, ...more] = await lines([...wordsOf(line), '--json']);
      assert.deepEqual(more, []);
      return JSON.parse(value ?? '');
    },
    /** Runs a command that must fail with this exit code, and with this error; returns its error lines. */
    errors: async (code: number, line: CommandLine, expected = /./) => {
      const result = await runHere([...wordsOf(line), ...common], env);
      const errors = result.errors.join('\n');
      assert.equal(result.code, code, errors);
      assert.match(errors, expected);
      return errors;
    },
  };
}
