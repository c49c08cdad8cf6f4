import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { type Part, readOpenApi } from './openapi.ts';

/** Runs a command. Resolves with its output; rejects with its errors if it fails. */
export const run = promisify(execFile);

/**
 * Writes openapi.yaml with the responses of success alone into a folder, and returns its path. For kits that throw errors
 * before generated code sees them: their operations return one type. Those that return a file are left out.
 */
export function writeSuccessDocument(folder: string): string {
  const document = readOpenApi();
  for (const [path, operations] of Object.entries<Part>(document.paths)) {
    const contents = Object.values<Part>(operations).map(({ responses }) => responses[200]?.content ?? {});
    if (contents.some((content) => Object.hasOwn(content, 'application/pdf'))) delete document.paths[path];
  }
  for (const operation of Object.values<Part>(document.paths).flatMap(Object.values<Part>)) {
    const responses = Object.entries(operation.responses).filter(([status]) => status.startsWith('2'));
    operation.responses = Object.fromEntries(responses);
  }
  const path = join(folder, 'openapi.yaml');
  writeFileSync(path, stringify(document, { aliasDuplicateObjects: false }));
  return path;
}

const folders: string[] = [];
process.once('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** Returns a new folder, which is removed when the process ends. */
export function buildFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'artseal-build-'));
  folders.push(folder);
  return folder;
}

const openApiGenerator = 'org.openapitools:openapi-generator-cli:7.24.0';
let generatorJar: Promise<string> | undefined;

/** Generates a client with openapi-generator, which Maven downloads. */
export async function generate(
  language: string,
  document: string,
  output: string,
  ...options: string[]
): Promise<void> {
  generatorJar ??= downloadGenerator();
  const words = ['generate', '-g', language, '-i', document, '-o', output, ...options];
  await run('java', ['-jar', await generatorJar, ...words]);
}

async function downloadGenerator(): Promise<string> {
  const folder = buildFolder();
  const words = [`-Dartifact=${openApiGenerator}`, `-DoutputDirectory=${folder}`];
  await run('mvn', ['--quiet', '--batch-mode', 'dependency:copy', ...words]);
  const [, name, version] = openApiGenerator.split(':');
  return join(folder, `${name}-${version}.jar`);
}
