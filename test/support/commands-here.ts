import type { ChildCommand, ChildCommands } from '../../src/operations/child-commands.ts';
import { runHere } from './artseal.ts';

/** Runs commands in this process: a process of its own takes a second. */
async function* run({ words, env }: ChildCommand): AsyncGenerator<object, void> {
  const set = Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]));
  const { printed, errors } = await runHere(words, Object.fromEntries(set));
  if (printed.length === 0) throw new Error(errors.join('\n').replaceAll(/^artseal: /gm, ''));
  for (const line of printed) yield JSON.parse(line);
}

/** The child commands of a server, in this process. */
export const commandsHere: ChildCommands = { run, runInTurn: run, stop: async () => {} };
