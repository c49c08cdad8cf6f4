import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { projectFolder } from './project.ts';

/** A part of openapi.yaml. Parts have every shape; `npm run check` validates the document. */
// biome-ignore lint/suspicious/noExplicitAny: see above.
export type Part = any;

/** The path of openapi.yaml. */
export const openApiPath: string = join(projectFolder, 'openapi.yaml');

/** Reads openapi.yaml. */
export const readOpenApi = (): Part => parse(readFileSync(openApiPath, 'utf8'), { maxAliasCount: -1 });

/** Returns the part of a document that a reference refers to, or the part itself. */
export function resolved(document: Part, part: Part): Part {
  const names: string[] | undefined = part?.$ref?.slice('#/'.length).split('/');
  if (names === undefined) return part;
  const target = names.reduce((found, name) => found[name], document);
  return resolved(document, target);
}
