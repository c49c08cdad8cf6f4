import { execFileSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { guides } from '../src/http/rest/docs/guides.ts';

/** The root folder of the project. */
export const projectFolder: string = join(import.meta.dirname, '..');

/** Files besides modules that the service reads at run time: paths from the project's root, sorted. */
export const packagedFiles: readonly string[] = [
  'docs/try.html',
  'docs/verify.html',
  'openapi.yaml',
  ...guides.map(({ file }) => file),
  ...globSync('docs/site/*', { cwd: projectFolder }).sort(),
  'src/console/console.html',
  ...globSync('src/store/{sqlite,postgres}/migrations/{*.sql,meta/_journal.json}', {
    cwd: projectFolder,
  }).sort(),
];

/**
 * Returns the commit that is built: 40 hex digits, followed by `-dirty` if files differ from it. Without a git
 * repository, ARTSEAL_COMMIT must be set.
 */
export function builtCommit(): string {
  if (process.env.ARTSEAL_COMMIT) return process.env.ARTSEAL_COMMIT;
  const git = (...words: string[]) =>
    execFileSync('git', words, { cwd: projectFolder, encoding: 'utf8' }).trim();
  return `${git('rev-parse', 'HEAD')}${git('status', '--porcelain') === '' ? '' : '-dirty'}`;
}
