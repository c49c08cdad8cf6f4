import type { Finding } from '../../domain/finding.ts';
import type { ChildCommands } from '../child-commands.ts';

/** Runs `artseal check` with the settings of a server in a child process. Throws RATE_LIMITED while another command runs there. */
export async function* checkInChild(
  { run }: ChildCommands,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): AsyncGenerator<Finding, void> {
  for await (const finding of run({ words: ['check', '--json'], env }, signal)) yield finding as Finding;
}
