import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { collectionFile } from '../src/http/rest/docs/guides.ts';
import { type Part, readOpenApi, resolved } from './openapi.ts';
import { projectFolder } from './project.ts';

/**
 * Writes the signed requests of openapi.yaml as a Postman collection (format 2.1), which Bruno imports too, into
 * docs/site, or the folder that is given. Its script signs each request.
 */

const document = readOpenApi();

function exampleOf(part: Part): unknown {
  const { example, examples = {} } = part;
  return example ?? resolved(document, Object.values(examples)[0])?.value;
}

/**
 * Runs in Postman, and as Bruno translates it. Variables are replaced here: what is sent is what is signed. Postman would give a
 * dynamic variable of the body, such as {{$guid}}, another value as it sends it.
 */
const signing = `// Signs the request with the collection variables apiKey and apiSecret.
const crypto = require('crypto-js');
const key = pm.variables.replaceIn('{{apiKey}}').trim();
const secret = pm.variables.replaceIn('{{apiSecret}}').trim();
if (!key.startsWith('ak_') || !secret.startsWith('sk_'))
  throw new Error('Set the variables apiKey (ak_...) and apiSecret (sk_...) of the collection, and save it.');
const url = pm.variables.replaceIn(String(pm.request.url));
const target = url.replace(/^([a-z]+:\\/\\/)?[^/]+/i, '');
const unreplaced = typeof bru === 'object' ? req.getBody({ raw: true }) : pm.request.body;
const body = pm.variables.replaceIn(String(unreplaced || ''));
if (body && typeof bru !== 'object') pm.request.body.update({ mode: 'raw', raw: body });
const timestamp = String(Math.floor(Date.now() / 1000));
const nonce = pm.variables.replaceIn('{{$guid}}');
const message = pm.request.method + target + crypto.SHA256(body).toString() + timestamp + nonce;
pm.request.headers.upsert({ key: 'X-Api-Key', value: key });
pm.request.headers.upsert({ key: 'X-Timestamp', value: timestamp });
pm.request.headers.upsert({ key: 'X-Nonce', value: nonce });
pm.request.headers.upsert({ key: 'X-Signature', value: crypto.HmacSHA256(message, secret).toString() });`;

const checking = `// Checks the signature, and keeps new ids for the next requests.
pm.test('the signature is valid', () => pm.expect(pm.response.code).not.to.equal(401));
const type = String(pm.response.headers.get('Content-Type'));
const answered = type.startsWith('application/json') ? pm.response.json() : {};
const { filingNo, escrowId, linkId } = answered;
const { webhookId } = answered.webhook || {};
for (const [name, value] of Object.entries({ filingNo, escrowId, linkId, webhookId }))
  if (value) pm.collectionVariables.set(name, value);`;

const event = (listen: string, script: string) => {
  return { listen, script: { type: 'text/javascript', exec: script.split('\n') } };
};

const access = { baseUrl: document.servers[0].url, apiKey: '', apiSecret: '' };
const variables = new Map<string, unknown>(Object.entries(access));

/** The JSON of an example, with the ids that variables have. */
const bodyText = (example: unknown): string =>
  JSON.stringify(example, (name, value) => (variables.has(name) ? `{{${name}}}` : value));

/** The request of an operation, with the example of the document as its body. */
function requestOf({ path, method, operation }: { path: string; method: string; operation: Part }) {
  const parameters: Part[] = (operation.parameters ?? []).map((part: Part) => resolved(document, part));
  for (const { name, ...parameter } of parameters.filter((one) => one.in === 'path'))
    variables.set(name, exampleOf(parameter) ?? exampleOf(resolved(document, parameter.schema)) ?? '');
  const optional = (place: string) =>
    parameters
      .filter((one) => one.in === place)
      .map((one) => ({ key: one.name, value: String(exampleOf(one) ?? ''), disabled: true }));
  const raw = `{{baseUrl}}${path.replaceAll('{', '{{').replaceAll('}', '}}')}`;
  const content = operation.requestBody?.content['application/json'];
  const example = content && exampleOf(content);
  const json = { key: 'Content-Type', value: 'application/json' };
  return {
    name: operation.summary,
    request: {
      method: method.toUpperCase(),
      description: operation.description,
      header: [...(example === undefined ? [] : [json]), ...optional('header')],
      url: { raw, host: ['{{baseUrl}}'], path: raw.split('/').slice(1), query: optional('query') },
      ...(example !== undefined && { body: { mode: 'raw', raw: bodyText(example) } }),
    },
  };
}

const operations = Object.entries<Part>(document.paths)
  .filter(([path]) => path.startsWith('/api/'))
  .flatMap(([path, methods]) =>
    Object.entries<Part>(methods).map(([method, operation]) => ({ path, method, operation })),
  )
  // All requests of a folder can run in a row.
  .sort((one, other) => Number(one.method === 'delete') - Number(other.method === 'delete'));
const folders = Map.groupBy(operations, ({ operation }) => operation.tags[0] as string);
const item = Array.from(folders, ([name, requests]) => ({ name, item: requests.map(requestOf) }));
const collection = {
  info: {
    name: `Artseal ${document.info.version}`,
    description:
      'Set the variables baseUrl, apiKey and apiSecret. The script of the collection signs each request.',
    schema: 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json',
  },
  item,
  event: [event('prerequest', signing), event('test', checking)],
  variable: Array.from(variables, ([key, value]) => ({ key, value })),
};
const [folder = join(projectFolder, 'docs', 'site')] = process.argv.slice(2);
writeFileSync(join(folder, basename(collectionFile)), `${JSON.stringify(collection, undefined, 2)}\n`);
