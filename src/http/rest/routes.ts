import type { IncomingMessage } from 'node:http';
import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescMethodUnary,
  type DescService,
  getOption,
  hasOption,
  isMessage,
  type Message,
  ScalarType,
} from '@bufbuild/protobuf';
import { free_of_quota, may_be_empty, unit } from '../../../gen/artseal/v1/options_pb.ts';
import { http } from '../../../gen/google/api/annotations_pb.ts';
import type { HttpRule } from '../../../gen/google/api/http_pb.ts';
import { HttpBodySchema } from '../../../gen/google/api/httpbody_pb.ts';
import { claimedKey } from '../../api/authentication.ts';
import type { RequestEvent } from '../../api/call-observer.ts';
import { writeMessage } from '../../api/message-json.ts';
import { isUnary, type Reading } from '../../api/operation.ts';
import type { CallResult, Calls, SignedCall } from '../../api/pipeline.ts';
import { ApiError } from '../../domain/reason.ts';
import type { Violation } from '../../domain/violation.ts';
import {
  integerOf,
  JsonNumber,
  type JsonObject,
  type JsonValue,
  parseJsonObject,
  shownName,
  typeRules,
  wordRule,
} from '../../lib/strict-json.ts';
import {
  checkMediaType,
  errorResponse,
  type HttpResponse,
  jsonResponse,
  parseRequestTarget,
  type RequestTarget,
  rateLimitHeaders,
  readBody,
  sentCredentials,
  sentHeader,
} from './http-message.ts';

/** Responds to a signed call. Throws BAD_REQUEST_TARGET and ClientGone. */
export type SignedCalls = (request: IncomingMessage, event: RequestEvent) => Promise<HttpResponse>;

export function createSignedCalls(calls: Calls, routes: readonly Route[]): SignedCalls {
  return async (request, event) => {
    const { method = '', url: target = '' } = request;
    const parsedTarget = parseRequestTarget(target);
    const credentials = sentCredentials(request);
    let route: Route | undefined;
    const call: SignedCall = {
      ...{ method, target, credentials },
      readBody: () => readBody(request),
      route: (body) => {
        const found = findRoute(routes, method, parsedTarget);
        if (readsJson(found.body, body)) checkMediaType(request);
        route = found;
        return {
          method: found.method,
          idempotencyKeys: sentHeader(request, 'idempotency-key'),
          isFreeOfQuota: found.isFreeOfQuota,
          read: () => found.read(parsedTarget, body),
        };
      },
    };
    const result = await calls.signed(call, event);
    if (event.caller === undefined) event.claimedKey = claimedKey(credentials);
    return responseOf(result, route, event);
  };
}

function responseOf(
  { response, isReplay, originalRequestId, limits }: CallResult,
  route: Route | undefined,
  event: RequestEvent,
): HttpResponse {
  let http: HttpResponse;
  if (response instanceof ApiError) {
    event.apiError = response;
    // The body of a replay has the request id of the original call.
    http = errorResponse(response, originalRequestId ?? event.requestId);
  } else http = (route as Route).write(response);
  if (isReplay) http.headers['Idempotent-Replayed'] = 'true';
  if (limits !== undefined) Object.assign(http.headers, rateLimitHeaders(limits));
  return http;
}

/** A REST route: one google.api.http annotation of one method. */
export interface Route {
  readonly method: DescMethodUnary;
  /** GET, POST, … */
  readonly verb: string;
  /** As in the annotation: /api/v1/provenance/{filing_no}. */
  readonly template: string;
  /** The JSON body of requests: an object, an optional empty object, or no body. */
  readonly body: 'REQUIRED' | 'OPTIONAL' | 'NONE';
  /** Whether calls do not count against the quota. */
  readonly isFreeOfQuota: boolean;
  /** Whether the path of a target matches the template. */
  matches(target: RequestTarget): boolean;
  /** Reads the request message from a matching target and a body. Throws INVALID_JSON. */
  read(target: RequestTarget, body: Uint8Array): Reading;
  /** The documented response to a message: its JSON, or the file that it has. */
  write(response: Message): HttpResponse;
}

/** The routes of the annotated methods. Throws for an annotation that the public API does not support. */
export function createRoutes(services: readonly DescService[]): Route[] {
  const methods = services.flatMap((service) => service.methods);
  const routes = methods
    .filter((method) => hasOption(method, http))
    .map((method) => {
      if (!isUnary(method)) throw new Error(`${method} streams; the public API has unary methods only.`);
      return createRoute(method, getOption(method, http));
    });
  // A literal segment before a variable one, in any order of the schema.
  return routes.sort((a, b) =>
    a.template.replaceAll('{', '\x7f') < b.template.replaceAll('{', '\x7f') ? -1 : 1,
  );
}

/** Finds the route of a request. Throws NOT_FOUND, and METHOD_NOT_ALLOWED with the verbs of the path. */
export function findRoute(routes: readonly Route[], verb: string, target: RequestTarget): Route {
  const found = routes.find((route) => route.verb === verb && route.matches(target));
  if (found !== undefined) return found;
  const others = routes.filter((route) => route.matches(target));
  if (others.length === 0)
    throw new ApiError('NOT_FOUND', 'There is no such route; /openapi.yaml lists them all.');
  const verbs = [...new Set(others.map((route) => route.verb))].sort();
  throw new ApiError('METHOD_NOT_ALLOWED', `This route takes ${verbs.join(', ')}.`, { allow: verbs });
}

const variable = /^\{([a-z0-9_]+)\}$/;

function createRoute(method: DescMethodUnary, rule: HttpRule): Route {
  const { case: kind, value: template } = rule.pattern;
  if (
    kind === undefined ||
    kind === 'custom' ||
    !template.startsWith('/') ||
    !['', '*'].includes(rule.body)
  ) {
    throw new Error(`${method} has an annotation that the public API does not support.`);
  }
  const write = responseWriter(method, rule.responseBody);
  const fields = new Map(documentedFields(method.input));
  const pattern = template
    .slice(1)
    .split('/')
    .map((segment) => {
      const name = variable.exec(segment)?.[1];
      if (name === undefined) return { literal: segment };
      const field = method.input.fields.find((candidate) => candidate.name === name);
      if (field?.fieldKind !== 'scalar')
        throw new Error(`${template} has no scalar field ${name} in ${method.input}.`);
      fields.delete(field.jsonName);
      return { field };
    });
  const variables = pattern.flatMap(({ field }, index) => (field === undefined ? [] : [{ field, index }]));
  const body = rule.body === '*' ? 'REQUIRED' : kind === 'get' ? 'NONE' : 'OPTIONAL';
  const noFields: ReadonlyMap<string, DescField> = new Map();
  const [bodyFields, queryFields] = body === 'REQUIRED' ? [fields, noFields] : [noFields, fields];

  return {
    method,
    verb: kind.toUpperCase(),
    template,
    body,
    isFreeOfQuota: getOption(method, free_of_quota),
    matches: ({ segments }) =>
      segments.length === pattern.length &&
      pattern.every(({ literal }, index) =>
        literal === undefined ? segments[index] !== '' : segments[index] === literal,
      ),
    read: ({ segments, query }, bytes) => {
      const reader = new MessageReader(method.input);
      for (const { field, index } of variables) {
        reader.take(field.jsonName, field, textValue(field, segments[index] ?? ''));
      }
      for (const [name, text] of query) {
        const field = queryFields.get(name);
        if (name === '') reader.reject({ field: 'the query', rule: namelessRule });
        else if (text === '' && field !== undefined && !getOption(field, may_be_empty))
          reader.reject({ field: name, rule: emptyRule });
        else reader.take(name, field, field === undefined ? text : textValue(field, text));
      }
      if (readsJson(body, bytes)) reader.takeMembers(bodyFields, parseJsonObject(bytes));
      else if (bytes.length > 0) reader.reject({ field: 'body', rule: 'must be empty' });
      return reader.reading();
    },
    write,
  };
}

/** Whether a body is read as JSON. */
function readsJson(body: Route['body'], bytes: Uint8Array): boolean {
  return body === 'REQUIRED' || (body === 'OPTIONAL' && bytes.length > 0);
}

const namelessRule = 'has a parameter without a name: look for a stray & or ?';

/** Writes a response, or only the message in it that the annotation names as response_body. */
function responseWriter({ output }: DescMethodUnary, responseBody: string): Route['write'] {
  if (responseBody === '') {
    documentedFields(output);
    return (response) => jsonResponse(200, writeMessage(output, response));
  }
  const field = output.fields.find(({ name }) => name === responseBody);
  if (field?.fieldKind !== 'message') throw new Error(`${output} has no message ${responseBody}.`);
  const { message } = field;
  if (message !== HttpBodySchema) documentedFields(output);
  return (response) => {
    const body = (response as unknown as Record<string, Message | undefined>)[field.localName];
    if (body === undefined) throw new Error(`${field} is not set.`);
    return isMessage(body, HttpBodySchema)
      ? { status: 200, headers: { 'Content-Type': body.contentType }, body: body.data }
      : jsonResponse(200, writeMessage(message, body));
  };
}

/**
 * The JSON of messages over REST. It differs from ProtoJSON: 64-bit integers are numbers in both directions, a member has one
 * spelling, and unknown members, null and values of another type are rejected.
 */

/** The value of a field, or the rule that the sent value breaks. */
type FieldReading = { readonly value: unknown } | { readonly rule: string };

const integerRanges: { readonly [Type in ScalarType]?: readonly [min: bigint, max: bigint] } = {
  [ScalarType.INT32]: [-(2n ** 31n), 2n ** 31n - 1n],
  [ScalarType.INT64]: [BigInt(Number.MIN_SAFE_INTEGER), BigInt(Number.MAX_SAFE_INTEGER)],
};

/** The fields of a message by their JSON names. Throws for a field of a type that this JSON does not support. */
function documentedFields(desc: DescMessage): ReadonlyMap<string, DescField> {
  for (const field of desc.fields) {
    const scalar =
      field.fieldKind === 'scalar' || (field.fieldKind === 'list' && field.listKind === 'scalar');
    const known =
      !scalar || [ScalarType.STRING, ScalarType.BOOL].includes(field.scalar) || integerRanges[field.scalar];
    if (!known || field.fieldKind === 'map' || (field.oneof && !field.proto.proto3Optional)) {
      throw new Error(`${field} has a type that the public API does not support.`);
    }
    const nested = field.message;
    if (nested !== undefined && nested !== desc) documentedFields(nested);
  }
  return new Map(desc.fields.map((field) => [field.jsonName, field]));
}

/** Builds a message from path, query and body, and collects the violations. */
class MessageReader {
  readonly #desc: DescMessage;
  readonly #values: Record<string, unknown> = {};
  readonly #violations: Violation[] = [];

  constructor(desc: DescMessage) {
    this.#desc = desc;
  }

  /** Reads one value; `field` is undefined if the request has no field of that name. */
  take(name: string, field: DescField | undefined, json: JsonValue): void {
    const isRepeated = field !== undefined && Object.hasOwn(this.#values, field.localName);
    const reading = field === undefined ? unknownField : isRepeated ? repeatedField : readField(field, json);
    if ('rule' in reading) this.reject({ field: shownName(name), rule: reading.rule });
    else if (field !== undefined) this.#values[field.localName] = reading.value;
  }

  /** Reads the members of an object. */
  takeMembers(fields: ReadonlyMap<string, DescField>, object: JsonObject): void {
    for (const [name, json] of object) this.take(name, fields.get(name), json);
  }

  reject(violation: Violation): void {
    this.#violations.push(violation);
  }

  reading(): Reading {
    return { message: create(this.#desc, this.#values), violations: this.#violations };
  }
}

/** An empty value is not the same as an absent one: it would widen a list without notice. */
const emptyRule = 'must not be empty; leave it out instead';

const unknownField: FieldReading = { rule: 'is not part of this request' };
const repeatedField: FieldReading = { rule: 'was given more than once' };

/** The JSON value for the text of a path segment or query parameter. */
function textValue(field: DescField, text: string): JsonValue {
  const isText =
    field.fieldKind === 'enum' || (field.fieldKind === 'scalar' && field.scalar === ScalarType.STRING);
  if (isText) return text;
  if (field.fieldKind === 'scalar' && field.scalar === ScalarType.BOOL)
    return text === 'true' || (text === 'false' ? false : text);
  return new JsonNumber(text);
}

function readField(field: DescField, json: JsonValue): FieldReading {
  if (field.fieldKind !== 'list') return readSingle(field, json);
  if (!Array.isArray(json)) return { rule: typeRules.array };
  const items = json.map((item) => readSingle(field, item));
  const broken = items.find((item) => 'rule' in item);
  if (broken !== undefined) return { rule: `has an item that is wrong: it ${broken.rule}` };
  return { value: items.map((item) => 'value' in item && item.value) };
}

function readSingle(field: DescField, json: JsonValue): FieldReading {
  if (field.enum !== undefined) return readEnum(field.enum, json);
  if (field.message !== undefined) {
    if (!(json instanceof Map)) return { rule: typeRules.object };
    const reader = new MessageReader(field.message);
    reader.takeMembers(documentedFields(field.message), json);
    const { message, violations } = reader.reading();
    const [first] = violations;
    return first === undefined
      ? { value: message }
      : { rule: `has a member that is wrong: ${first.field} ${first.rule}` };
  }
  if (field.scalar === ScalarType.STRING)
    return typeof json === 'string' ? { value: json } : { rule: typeRules.string };
  if (field.scalar === ScalarType.BOOL)
    return typeof json === 'boolean' ? { value: json } : { rule: typeRules.boolean };
  return readInteger(field, json);
}

function readEnum(desc: DescEnum, json: JsonValue): FieldReading {
  const value = desc.values.find(({ name, number }) => number !== 0 && name === json);
  return value ? { value: value.number } : { rule: wordRule(desc.values) };
}

function readInteger(field: DescField, json: JsonValue): FieldReading {
  const [min, max] = (field.scalar && integerRanges[field.scalar]) ?? [0n, 0n];
  if (!(json instanceof JsonNumber)) return brokenInteger(field, ', written as a JSON number');
  const value = integerOf(json.text, max);
  if (value === undefined) return brokenInteger(field);
  if (value > max) return brokenInteger(field, ` not above ${max}`);
  if (value < min) return brokenInteger(field, ` not below ${min}`);
  return { value: field.scalar === ScalarType.INT32 ? Number(value) : value };
}

/** The rule of an integer, with the unit of its field. Only for errors: reading an option costs more than reading a message. */
function brokenInteger(field: DescField, bound = ''): FieldReading {
  const counted = getOption(field, unit);
  return { rule: `${typeRules.integer}${counted === '' ? '' : ` of ${counted}`}${bound}` };
}
