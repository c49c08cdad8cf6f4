import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';

/** A process that serves a database as an instance, and files. `answered` has the numbers, and in the end why it has lost the database. */
export async function startInstance(t: TestContext, url: string, calls: number) {
  const file = new URL('./children/instance.ts', import.meta.url).pathname;
  const child = spawn(
    process.execPath,
    [...process.execArgv.filter((word) => !word.startsWith('--test')), file, url, `${calls}`],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  t.after(() => child.kill('SIGKILL'));
  const answered: string[] = [];
  const lines = createInterface(child.stdout);
  await once(lines, 'line');
  lines.on('line', (line) => answered.push(line));
  return { child, answered };
}
