import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { projectFolder } from './project.ts';
import { writePage } from './self-contained-page.ts';
import type { Operation } from './try-page/signing.ts';

// Writes the page that signs and sends calls into docs/try.html, or into the file that is named.

// biome-ignore lint/suspicious/noExplicitAny: check:openapi validates the document.
type Json = any;

const document: Json = parse(readFileSync(join(projectFolder, 'openapi.yaml'), 'utf8'));
const operations = Object.entries<Json>(document.paths).flatMap(([path, item]) =>
  Object.entries<Json>(item).map(([method, operation]) => operationOf(method, path, operation)),
);
await writePage(
  {
    source: 'build/try-page',
    modules:
      /^(build\/(try|verify)-page|src\/domain\/reason-help\.ts|node_modules\/@noble|<define:OPERATIONS>)/,
    styles: ['build/verify-page/page.css'],
    policy: ["connect-src 'self'"],
    define: { OPERATIONS: JSON.stringify(operations) },
  },
  process.argv[2] ?? join(projectFolder, 'docs', 'try.html'),
);

function operationOf(method: string, path: string, operation: Json): Operation {
  const { operationId: id, summary, tags, security, parameters = [], requestBody } = operation;
  const examples = Object.values<Json>(requestBody?.content['application/json'].examples ?? {});
  return {
    ...{ id, method: method.toUpperCase(), path, summary, tag: tags[0], isSigned: security?.length !== 0 },
    parameters: parameters.map(resolved).map((parameter: Json) => {
      const { name, in: place, required, description, example = '' } = parameter;
      const [sentence = ''] = description.replaceAll('`', '').split(/(?<=\.)\s/);
      return { name, in: place, required, description: sentence, example: String(example) };
    }),
    examples: examples.map(resolved).map(({ summary: name, value }) => ({ name, value })),
  };
}

/** What a reference into the document leads to; any other value is returned as it is. */
function resolved(value: Json): Json {
  const names: string[] | undefined = value.$ref?.slice('#/'.length).split('/');
  return names === undefined ? value : resolved(names.reduce((part, name) => part[name], document));
}
