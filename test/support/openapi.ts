import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { parse } from 'yaml';
import { jsonType } from '../../src/http/rest/http-message.ts';

/** The OpenAPI document, as far as tests look into it; every reference is replaced by what it refers to. */
export interface OpenApi {
  readonly openapi: string;
  readonly info: { readonly version: string; readonly description: string };
  readonly servers: readonly { readonly url: string }[];
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  /** By the type of the event. */
  readonly webhooks: Readonly<Record<string, { readonly post: Operation }>>;
  readonly components: {
    readonly securitySchemes: Readonly<Record<string, SecurityScheme>>;
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly headers: Readonly<Record<string, Described>>;
  };
}

/** One way of calling the service. */
export interface Operation {
  readonly operationId: string;
  readonly description: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Content };
  /** By status. */
  readonly responses: Readonly<Record<string, Answered>>;
}

/** An answer of an operation. */
export interface Answered {
  readonly headers: Readonly<Record<string, Described>>;
  readonly content: Content;
}

/** Bodies by media type. */
export type Content = Readonly<Record<string, Body>>;

/** The schema of a body, and examples of it. */
export interface Body {
  readonly schema: Schema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

/** A value with a schema outside of bodies: a header. */
export interface Described {
  readonly required?: boolean;
  readonly schema: Schema;
  readonly example?: unknown;
}

/** A value that a request carries outside of its body. */
export interface Parameter extends Described {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly description: string;
}

/** A header that a signed request carries. */
export interface SecurityScheme {
  readonly type: string;
  readonly in: string;
  readonly name: string;
}

/** A JSON Schema, draft 2020-12, with the keywords that the document uses. */
export interface Schema {
  readonly type?: string;
  readonly format?: string;
  readonly const?: unknown;
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean;
  readonly allOf?: readonly Schema[];
}

/** An answer as it came over the wire; names of headers in lower case. */
export interface LiveAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The parsed body. */
  readonly json: unknown;
  /** The body as it came. */
  readonly text?: string;
}

const file = join(import.meta.dirname, '..', '..', 'openapi.yaml');

/** The document; loading this file throws where `dereference` does. */
export const openApi = dereference(parse(readFileSync(file, 'utf8'))) as OpenApi;

const ajv = new Ajv2020({ strict: true, allErrors: true });
formats.default(ajv);

/** What is wrong with a value by a schema of the document; empty if it fits. */
export function misfits(schema: Schema, value: unknown): string[] {
  const validate = ajv.compile(schema);
  validate(value);
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) =>
      `${instancePath || 'the value'} ${message} ${JSON.stringify(params)}`,
  );
}

/** What the document says of a request; undefined if it has no such operation. */
export function findInstruction(method: string, target: string): Operation | undefined {
  const segments = segmentsOf(target.split('?', 1).join());
  const [, verbs] =
    Object.entries(openApi.paths).find(([template]) => matches(segmentsOf(template), segments)) ?? [];
  return verbs?.[method.toLowerCase()];
}

/**
 * Asserts that a REST answer is as the document says: its status is one of the operation's, its body fits, the
 * headers that must be there are, every header that is described fits, and no occasional one is there without. What answers a request that is no
 * operation must be an error with a request id.
 */
export function assertDocumented(method: string, target: string, answer: LiveAnswer): void {
  const faults = faultsOf(findInstruction(method, target), answer);
  const shown = `${method} ${target} was answered ${answer.status} ${JSON.stringify(answer.json)}`;
  assert.ok(faults.length === 0, `${shown}, which openapi.yaml does not allow: ${faults.join('; ')}`);
}

function faultsOf(operation: Operation | undefined, answer: LiveAnswer): string[] {
  const { status, headers } = answer;
  if (operation === undefined && status < 400) return ['there is no such operation'];
  const answered = operation === undefined ? anyError : operation.responses[status];
  if (answered === undefined) return [`${operation?.operationId} has no such status`];
  return [
    ...bodyMisfits(answered.content, answer),
    ...Object.entries(answered.headers).flatMap(([name, described]) =>
      headerMisfits(described, headers[name.toLowerCase()]).map((misfit) => `header ${name} ${misfit}`),
    ),
    ...(operation === undefined ? [] : undescribed(answered, headers)),
    ...requestIdMisfits(answer),
  ];
}

function bodyMisfits(content: Content, { headers, json, text }: LiveAnswer): string[] {
  const type = String(headers['content-type']);
  const body = content[type];
  if (body === undefined) return [`Content-Type ${type} does not occur`];
  return misfits(closedOnce(body.schema), type === jsonType ? json : text);
}

const closedSchemas = new WeakMap<Schema, Schema>();

/** The closed form of a schema of the document. Each one is made once, because ajv compiles every new object. */
function closedOnce(schema: Schema): Schema {
  const made = closedSchemas.get(schema) ?? closed(schema);
  closedSchemas.set(schema, made);
  return made;
}

/** A schema whose objects have the described members alone, as every response has today. */
function closed(schema: Schema): Schema {
  const { properties, items } = schema;
  return {
    ...schema,
    ...(items && { items: closed(items) }),
    ...(properties && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, value]) => [name, closed(value)]),
      ),
      additionalProperties: false,
    }),
  };
}

/** The headers of only some responses, which the document has to describe where they are sent. */
const occasional = [
  'Idempotent-Replayed',
  'Link',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'X-Server-Time',
];

function undescribed(described: Answered, sent: LiveAnswer['headers']): string[] {
  return occasional
    .filter((name) => sent[name.toLowerCase()] !== undefined && !(name in described.headers))
    .map((name) => `header ${name} is not described`);
}

function headerMisfits({ required, schema }: Described, sent: LiveAnswer['headers'][string]): string[] {
  if (sent === undefined) return required ? ['must be there'] : [];
  if (typeof sent !== 'string') return ['must be sent once'];
  return misfits(schema, schema.type === 'integer' && /^[0-9]+$/.test(sent) ? Number(sent) : sent);
}

function requestIdMisfits({ headers, json }: LiveAnswer): string[] {
  const requestId = isObject(json) ? json.requestId : undefined;
  // A stored error keeps the id of the call that it answered first.
  if (requestId === undefined || headers['idempotent-replayed'] !== undefined) return [];
  return requestId === headers['x-request-id'] ? [] : ['requestId must be the X-Request-Id'];
}

/** What answers a request that is no operation. */
const anyError: Answered = {
  headers: { 'X-Request-Id': componentOf(openApi.components.headers, 'RequestId') },
  content: { 'application/json': { schema: componentOf(openApi.components.schemas, 'ErrorResponse') } },
};

function componentOf<T>(components: Readonly<Record<string, T>>, name: string): T {
  const component = components[name];
  if (component === undefined) throw new Error(`openapi.yaml has no component ${name}.`);
  return component;
}

const variable = /^\{.+\}$/;

function matches(template: readonly string[], segments: readonly string[]): boolean {
  return (
    template.length === segments.length &&
    template.every((part, index) => (variable.test(part) ? segments[index] !== '' : part === segments[index]))
  );
}

function segmentsOf(path: string): string[] {
  return path.split('/').map((segment) => {
    try {
      return decodeURIComponent(segment);
    } catch {
      return segment;
    }
  });
}

/**
 * Replaces every reference in a document by the component that it names, which all references to it share. Throws if one
 * names anything but a component of the document, or contradicts its place: generators of clients follow no other reference.
 */
function dereference(document: unknown): unknown {
  const components = new Map<string, unknown>();
  function component(pointer: string): unknown {
    const found = components.get(pointer) ?? resolved(componentAt(pointer, document));
    components.set(pointer, found);
    return found;
  }
  function resolved(node: unknown): unknown {
    if (Array.isArray(node)) return node.map(resolved);
    if (!isObject(node)) return node;
    const { $ref, ...members } = node;
    const own = Object.fromEntries(Object.entries(members).map(([name, value]) => [name, resolved(value)]));
    if ($ref === undefined) return own;
    const referred = component(String($ref));
    if (!isObject(referred)) throw new Error(`${$ref} in openapi.yaml refers to no object.`);
    // A reference may have its own description and further constraints.
    const contradicted = Object.keys(own).filter((name) => name in referred && name !== 'description');
    if (contradicted.length > 0) throw new Error(`${$ref} is referred to with other ${contradicted}.`);
    return Object.keys(own).length === 0 ? referred : { ...referred, ...own };
  }
  return resolved(document);
}

function componentAt(pointer: string, document: unknown): unknown {
  const path = /^#\/(components)\/(\w+)\/(\w+)$/.exec(pointer)?.slice(1) ?? [];
  const found = path.reduce<unknown>((node, part) => (isObject(node) ? node[part] : undefined), document);
  if (path.length === 0 || found === undefined) {
    throw new Error(
      `${pointer} in openapi.yaml must be #/components/<kind>/<name> of a component that is there.`,
    );
  }
  return found;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
