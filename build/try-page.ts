import { join } from 'node:path';
import { type Part, readOpenApi, resolved } from './openapi.ts';
import { projectFolder } from './project.ts';
import { writePage } from './self-contained-page.ts';
import type { Operation } from './try-page/signing.ts';

// Writes the page that signs and sends calls into docs/try.html, or into the file that is named.

const document = readOpenApi();
const operations = Object.entries<Part>(document.paths).flatMap(([path, item]) =>
  Object.entries<Part>(item).map(([method, operation]) => operationOf(method, path, operation)),
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

function operationOf(method: string, path: string, operation: Part): Operation {
  const { operationId: id, summary, tags, security, parameters = [], requestBody } = operation;
  const examples = Object.values<Part>(requestBody?.content['application/json'].examples ?? {});
  return {
    ...{ id, method: method.toUpperCase(), path, summary, tag: tags[0], isSigned: security?.length !== 0 },
    parameters: parameters.map((parameter: Part) => {
      const { name, in: place, required, description, example = '' } = resolved(document, parameter);
      const [sentence = ''] = description.replaceAll('`', '').split(/(?<=\.)\s/);
      return { name, in: place, required, description: sentence, example: String(example) };
    }),
    examples: examples.map((example) => {
      const { summary: name, value } = resolved(document, example);
      return { name, value };
    }),
  };
}
