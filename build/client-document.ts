import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { jsonType } from '../src/http/rest/http-message.ts';
import { buildFolder, generate } from './client-generator.ts';
import { type Part, readOpenApi } from './openapi.ts';

/** What the hand-written part of a kit does, so that nothing is generated for it. */
const handwritten = [
  'WebhookMessageId',
  'WebhookTimestamp',
  'WebhookSignature',
  'IdempotencyKey',
  'RequestId',
];

/** Rules of schemas. The server checks them, and a later release may allow more. */
const rules =
  'additionalProperties const maxItems maxLength maximum minItems minLength minimum pattern'.split(' ');

/**
 * Writes what kits with templates of their own are generated from, and returns its path: openapi.yaml with operations that
 * return one type, and schemas without rules. It has no errors and no `Idempotency-Key`; `x-writes` marks the operations
 * that take one.
 */
export function writeKitDocument(): string {
  const { openapi, info, paths, components } = readOpenApi();
  const { schemas, parameters } = components;
  const document = {
    openapi,
    info: { ...info, description: '' },
    paths,
    components: { schemas, parameters },
  };
  const path = join(buildFolder(), 'openapi.json');
  writeFileSync(path, JSON.stringify(JSON.parse(JSON.stringify(document), simplify)));
  return path;
}

/** A reviver for `JSON.parse`. */
function simplify(key: string, value: Part): unknown {
  const isDropped = ['headers', 'examples', 'security', 'tags'].includes(key);
  if (isDropped || handwritten.includes(key) || /^[A-Z]\w*Error$|^ErrorResponse$/.test(key)) return undefined;
  if (key === 'description' && typeof value === 'string')
    return value.split('\n\n')[0]?.replaceAll(/\s+/g, ' ').trim();
  if (key === 'parameters' && Array.isArray(value))
    return value.filter(({ $ref = '' }) => !handwritten.includes($ref.split('/').at(-1)));
  if (['get', 'post', 'patch', 'delete'].includes(key)) {
    // A kit has no operation that returns a file.
    if (value.responses[200].content[jsonType] === undefined) return undefined;
    return {
      ...value,
      responses: { 200: value.responses[200] },
      tags: ['Artseal'],
      'x-writes': key !== 'get',
    };
  }
  if (value?.contentMediaType !== undefined) return undefined;
  if (typeof value?.type !== 'string') return value;
  const dropped = [...rules, ...(value.type === 'string' ? ['format'] : [])];
  // Only enumerations with a name of their own become types.
  if (/^[a-z]/.test(key)) dropped.push('enum');
  return Object.fromEntries(Object.entries(value).filter(([name]) => !dropped.includes(name)));
}

/** Generates types and operations with openapi-generator and the templates of a kit. */
export async function generateFromTemplates(
  language: string,
  templates: string,
  output: string,
  options: Readonly<Record<string, string>>,
  ...words: string[]
): Promise<void> {
  const properties = Object.entries(options).map(([name, value]) => `${name}=${value}`);
  const parts = 'models,apis,modelDocs=false,apiDocs=false,modelTests=false,apiTests=false';
  const names = ['--api-name-suffix', 'Operations', '--additional-properties', properties.join(',')];
  const more = ['--template-dir', templates, '--global-property', parts, ...names, ...words];
  await generate(language, writeKitDocument(), output, ...more);
}
