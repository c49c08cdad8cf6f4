import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { temporaryFolder } from './temporary-folder.ts';

/** Makes a master key of this name, as settings have it. */
export const newKey = (name: string): string => `${name}:${randomBytes(32).toString('hex')}`;

/** The settings of a service whose master keys are in a file, and what writes them. */
export function keysInFile(t: Pick<TestContext, 'after'>) {
  const file = join(temporaryFolder(t), 'keys');
  const write = (...keys: readonly string[]) => writeFileSync(file, `${keys.join('\n')}\n`, { mode: 0o600 });
  return { file, env: { ARTSEAL_MASTER_KEY_FILE: file }, write };
}
