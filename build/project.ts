import { execFileSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { join } from 'node:path';

/** The folder of the project. */
export const projectFolder: string = join(import.meta.dirname, '..');

/** What the service reads while it runs, besides its modules: paths from the project's folder, in a fixed order. */
export const packagedFiles: readonly string[] = [
  'docs/verify.html',
  'openapi.yaml',
  ...globSync('src/store/sqlite/migrations/{*.sql,meta/_journal.json}', { cwd: projectFolder }).sort(),
];

/**
 * The commit that is built, 40 hex digits, with `-dirty` behind it where the files are not those of the commit; or what
 * ARTSEAL_COMMIT says, where there is no repository.
 */
export function builtCommit(): string {
  if (process.env.ARTSEAL_COMMIT) return process.env.ARTSEAL_COMMIT;
  const git = (...words: string[]) =>
    execFileSync('git', words, { cwd: projectFolder, encoding: 'utf8' }).trim();
  return `${git('rev-parse', 'HEAD')}${git('status', '--porcelain') === '' ? '' : '-dirty'}`;
}
