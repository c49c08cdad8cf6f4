import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Matches the package folder of a module: node_modules/name or node_modules/@scope/name. */
const packageFolder = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/;
/** Matches the last section of a README, where some packages have their licence. */
const licenceSection = /^#+ licen[sc]e$([^#]+)/im;
const line = '-'.repeat(80);

/** Returns the licence texts of the packages that contain these modules, and of the packages in these folders. */
export function licenceTexts(modules: readonly string[], folders: readonly string[]): string {
  const ofModules = modules.flatMap((path) => packageFolder.exec(path)?.[0] ?? []);
  const packages = new Set([...ofModules.sort(), ...folders]);
  return Array.from(packages, licenceOf).join(`\n${line}\n\n`);
}

function licenceOf(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const files = textsOf(folder, /^(licen[sc]e|notice)/i);
  const ofReadme = () =>
    textsOf(folder, /^readme\.md$/i).flatMap((text) => licenceSection.exec(text)?.[1]?.trim() ?? []);
  const texts = files.length > 0 ? files : ofReadme();
  return [`${name} ${version}: ${license}`, ...texts].map((text) => `${text}\n`).join('\n');
}

/** Returns the texts of the files of a folder that have such a name. */
function textsOf(folder: string, name: RegExp): readonly string[] {
  const files = readdirSync(folder).filter((file) => name.test(file));
  return files.sort().map((file) => readFileSync(join(folder, file), 'utf8').trim());
}
