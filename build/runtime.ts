import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { projectFolder } from './project.ts';

/**
 * The folder of a runtime that package.json names: npm installs that of this machine; those of others are fetched once
 * from the registry, and have to be what package-lock.json says.
 */
export function runtimeFolder(name: string): string {
  const installed = join(projectFolder, 'node_modules', name);
  if (existsSync(installed)) return installed;
  const lock = JSON.parse(readFileSync(join(projectFolder, 'package-lock.json'), 'utf8'));
  const { version, integrity } = lock.packages[`node_modules/${name}`];
  const folder = join(projectFolder, 'dist', 'runtimes', `${name}-${version}`);
  if (existsSync(folder)) return folder;
  const arriving = `${folder}.arriving`;
  rmSync(arriving, { recursive: true, force: true });
  mkdirSync(arriving, { recursive: true });
  const cwd = arriving;
  const archive = execFileSync('npm', ['pack', '--silent', `${name}@${version}`], {
    cwd,
    encoding: 'utf8',
  }).trim();
  const found = `sha512-${hash('sha512', readFileSync(join(arriving, archive)), 'base64')}`;
  if (found !== integrity)
    throw new Error(`${archive} has ${found}, and package-lock.json says ${integrity}.`);
  execFileSync('tar', ['-xzf', archive, '--strip-components=1'], { cwd });
  rmSync(join(arriving, archive));
  renameSync(arriving, folder);
  return folder;
}
