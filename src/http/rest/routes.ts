import {
  type DescField,
  type DescMethodUnary,
  type DescService,
  getOption,
  hasOption,
  type Message,
} from '@bufbuild/protobuf';
import { free_of_quota, may_be_empty } from '../../../gen/artseal/v1/options_pb.ts';
import { http } from '../../../gen/google/api/annotations_pb.ts';
import type { HttpRule } from '../../../gen/google/api/http_pb.ts';
import type { Reading } from '../../api/incoming-call.ts';
import { isUnary } from '../../api/operation.ts';
import { ApiError } from '../../domain/reason.ts';
import type { Violation } from '../../domain/violation.ts';
import { parseJsonObject } from '../../lib/json/strict-json.ts';
import {
  documentedFields,
  emptyRule,
  type JsonOutput,
  MessageReader,
  textValue,
  writeMessage,
} from './message-json.ts';
import type { RequestTarget } from './request-target.ts';

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
  /** The documented JSON of a response. */
  write(response: Message): JsonOutput;
}

/** The routes of the annotated methods. Throws for an annotation that the public API does not support. */
export function createRoutes(services: readonly DescService[]): Route[] {
  const methods = services.flatMap((service) => service.methods);
  const routes = methods
    .filter((method) => hasOption(method, http))
    .flatMap((method) => {
      if (!isUnary(method)) throw new Error(`${method} streams; the public API has unary methods only.`);
      const rule = getOption(method, http);
      return [rule, ...rule.additionalBindings].map((binding) => createRoute(method, binding));
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
        if (name === '') reader.reject(namelessParameter);
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
export function readsJson(body: Route['body'], bytes: Uint8Array): boolean {
  return body === 'REQUIRED' || (body === 'OPTIONAL' && bytes.length > 0);
}

const namelessParameter: Violation = {
  field: 'the query',
  rule: 'has a parameter without a name: look for a stray & or ?',
};

/** Writes a response, or only the message in it that the annotation names as response_body. */
function responseWriter({ output }: DescMethodUnary, responseBody: string): Route['write'] {
  documentedFields(output);
  if (responseBody === '') return (response) => writeMessage(output, response);
  const field = output.fields.find(({ name }) => name === responseBody);
  if (field?.fieldKind !== 'message') throw new Error(`${output} has no message ${responseBody}.`);
  return (response) => {
    const body = (response as unknown as Record<string, Message | undefined>)[field.localName];
    if (body === undefined) throw new Error(`${field} is not set.`);
    return writeMessage(field.message, body);
  };
}
