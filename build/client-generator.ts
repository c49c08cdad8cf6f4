import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse, stringify } from 'yaml';
import { projectFolder } from './project.ts';

/** Runs a command. Resolves with its output; rejects with its errors if it fails. */
export const run = promisify(execFile);

/** The path of openapi.yaml. */
export const openApiPath: string = join(projectFolder, 'openapi.yaml');

/** A part of openapi.yaml: how an operation is called, and what it returns. */
export interface DocumentedOperation {
  readonly operationId: string;
  responses: Record<string, { readonly content?: Readonly<Record<string, unknown>> }>;
}

/** openapi.yaml, as far as kits are generated from it. */
export interface OpenApi {
  readonly openapi: string;
  readonly info: object;
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentedOperation>>>>;
  readonly components: { readonly schemas: object; readonly parameters: object };
}

/** Reads openapi.yaml. */
export const readOpenApi = (): OpenApi => parse(readFileSync(openApiPath, 'utf8'));

/**
 * Writes openapi.yaml with the responses of success alone into a folder, and returns its path. For kits that throw errors
 * before generated code sees them: their operations return one type.
 */
export function writeSuccessDocument(folder: string): string {
  const document = readOpenApi();
  for (const operation of Object.values(document.paths).flatMap(Object.values<DocumentedOperation>)) {
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
