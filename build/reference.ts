import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib';
import scalar from '@scalar/fastify-api-reference';
import fastify from 'fastify';
import { referenceFile, scalarFile, scalarVersion } from '../src/http/rest/docs/reference.ts';
import { readOpenApi } from './openapi.ts';
import { projectFolder } from './project.ts';

/**
 * Writes what the API reference loads into docs/site, or the folder that is given: the OpenAPI document as the page shows it,
 * and Scalar's script.
 */
const [folder = join(projectFolder, 'docs', 'site')] = process.argv.slice(2);

const installed = JSON.parse(
  readFileSync(join(projectFolder, 'node_modules/@scalar/fastify-api-reference/package.json'), 'utf8'),
).version;
if (installed !== scalarVersion)
  throw new Error(`Scalar ${installed} is installed: set scalarVersion in src/http/rest/docs/reference.ts.`);

const document = readOpenApi();
// Scalar would ask for credentials, which it cannot sign with.
delete document.security;
delete document.components.securitySchemes;
document.servers = [{ url: '/' }];
for (const operation of [document.paths, document.webhooks].flatMap(Object.values).flatMap(Object.values)) {
  // Summaries are headings and entries of lists, which show no Markdown.
  operation.summary = operation.summary.replaceAll('`', '');
  const isSigned = operation.security === undefined;
  delete operation.security;
  if (isSigned)
    operation.description = `${operation.description ?? ''}\n\n[Try this call](/docs/try#${operation.operationId})\n`;
}
writeFileSync(join(folder, basename(referenceFile)), `${JSON.stringify(document, undefined, 1)}\n`);

const script = await scalarScript();
const file = join(folder, basename(scalarFile));
const others = globSync(join(folder, 'scalar-*.js.br'));
if (!others.includes(file) || !brotliDecompressSync(readFileSync(file)).equals(script)) {
  const params = {
    [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
    [constants.BROTLI_PARAM_SIZE_HINT]: script.length,
  };
  for (const other of others) rmSync(other);
  writeFileSync(file, brotliCompressSync(script, { params }));
}

/** Scalar's script, which its plugin for Fastify serves. */
async function scalarScript(): Promise<Buffer> {
  const server = fastify();
  await server.register(scalar, { routePrefix: '/', configuration: { content: {} } });
  const { rawPayload } = await server.inject('/js/scalar.js');
  return rawPayload;
}
