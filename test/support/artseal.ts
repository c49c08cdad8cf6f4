import { runArtseal } from '../../src/cli/artseal.ts';

/** How a command ended, by the lines that it wrote. */
export interface ArtsealResult {
  readonly code: number;
  readonly printed: readonly string[];
  readonly errors: readonly string[];
}

/** Runs `artseal` in this process, which is another one than that of a watched service. */
export async function runHere(words: readonly string[], env: Record<string, string>): Promise<ArtsealResult> {
  const printed: string[] = [];
  const errors: string[] = [];
  const code = await runArtseal([...words], {
    env,
    print: (line) => printed.push(line),
    printError: (line) => errors.push(line),
  });
  return { code, printed, errors };
}
