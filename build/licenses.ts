import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Matches the package folder of a module: node_modules/name or node_modules/@scope/name. */
const packageFolder = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/;
const line = '-'.repeat(80);

/** Returns the licence texts of the packages that contain these modules, and of the packages in these folders. */
export function licenceTexts(modules: readonly string[], folders: readonly string[]): string {
  const ofModules = modules.flatMap((path) => packageFolder.exec(path)?.[0] ?? []);
  const packages = new Set([...ofModules.sort(), ...folders]);
  return Array.from(packages, licenceOf).join(`\n${line}\n\n`);
}

function licenceOf(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const files = globSync('{LICEN[SC]E,NOTICE}*', { cwd: folder }).sort();
  const texts = files.map((file) => readFileSync(join(folder, file), 'utf8').trim());
  return [`${name} ${version}: ${license}`, ...texts].map((text) => `${text}\n`).join('\n');
}
