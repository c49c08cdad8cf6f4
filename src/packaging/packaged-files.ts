import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { extname, join } from 'node:path';
import { getAsset, isSea } from 'node:sea';
import { Worker, type WorkerOptions } from 'node:worker_threads';
import { shareNativeAddon } from './native-addon.ts';

/** Reads a packaged file by its path from the root of the project, such as `openapi.yaml`. */
export function readPackaged(path: string): Buffer {
  return isSea() ? Buffer.from(getAsset(path)) : readFileSync(join(import.meta.dirname, '..', '..', path));
}

/** The package of the font of certificates. */
export const fontPackage = '@fontsource/noto-sans-sc';

/** The file of a slice of the font of certificates. */
export const fontFile = (slice: string): string => `files/noto-sans-sc-${slice}-400-normal.woff`;

/** The file that says which characters each slice has. */
export const fontRanges = 'unicode.json';

/** Reads a slice of the font of certificates. */
export const readFont = (slice: string): Buffer => readFromFont(fontFile(slice));

/** Reads which characters each slice has: names of slices and unicode-range of CSS. */
export const readFontRanges = (): Readonly<Record<string, string>> =>
  JSON.parse(String(readFromFont(fontRanges)));

function readFromFont(file: string): Buffer {
  const name = `${fontPackage}/${file}`;
  return isSea() ? Buffer.from(getAsset(name)) : readFileSync(createRequire(import.meta.url).resolve(name));
}

/** The file of the executable with the licences of third-party software. */
export const licencesFile = 'licenses.txt';

/** The licences of what the script of the API reference contains. */
export const scalarLicencesFile = 'docs/site/scalar-licenses.txt';

/** Starts a worker thread on a module, given by its path from the root of the project without extension. */
export function startThread(module: string, options: WorkerOptions): Worker {
  if (!isSea()) {
    // TypeScript in a checkout, JavaScript in the package.
    const file = `${module}${extname(import.meta.filename)}`;
    return new Worker(join(import.meta.dirname, '..', '..', file), options);
  }
  shareNativeAddon();
  return new Worker(getAsset(`${module}.js`, 'utf8'), { ...options, eval: true });
}

/** The program and arguments that start another `artseal`; a command and its arguments follow them. */
export function ownCommand(): readonly string[] {
  if (isSea()) return [process.execPath];
  return [process.execPath, join(import.meta.dirname, '..', `main${extname(import.meta.filename)}`)];
}
