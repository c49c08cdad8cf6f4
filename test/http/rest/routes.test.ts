import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, createFileRegistry, type DescService, setExtension } from '@bufbuild/protobuf';
import {
  type DescriptorProto,
  DescriptorProtoSchema,
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FieldDescriptorProtoSchema,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  MethodDescriptorProtoSchema,
  MethodOptionsSchema,
  ServiceDescriptorProtoSchema,
} from '@bufbuild/protobuf/wkt';
import { AdminService } from '../../../gen/artseal/v1/admin_pb.ts';
import { EscrowService } from '../../../gen/artseal/v1/escrow_pb.ts';
import { EventService } from '../../../gen/artseal/v1/event_pb.ts';
import { EvidenceService } from '../../../gen/artseal/v1/evidence_pb.ts';
import { FilingService } from '../../../gen/artseal/v1/filing_pb.ts';
import { ProvenanceService } from '../../../gen/artseal/v1/provenance_pb.ts';
import { ReviewService } from '../../../gen/artseal/v1/review_pb.ts';
import { WebhookService } from '../../../gen/artseal/v1/webhook_pb.ts';
import { http } from '../../../gen/google/api/annotations_pb.ts';
import { type HttpRule, HttpRuleSchema } from '../../../gen/google/api/http_pb.ts';
import type { ApiError } from '../../../src/domain/reason.ts';
import { parseRequestTarget } from '../../../src/http/rest/http-message.ts';
import { createRoutes, findRoute } from '../../../src/http/rest/routes.ts';
import { fileScope } from '../../support/file-scope.ts';
import { rawExchange, rawRequest } from '../../support/raw-http.ts';
import { apiError } from '../../support/rejected.ts';
import { startService } from '../../support/service.ts';
import { headersOf } from '../../support/signed-request.ts';

const service = await startService(fileScope);
const platform = await service.platform();
const routes = createRoutes([
  AdminService,
  EscrowService,
  EventService,
  EvidenceService,
  FilingService,
  ProvenanceService,
  ReviewService,
  WebhookService,
]);
const find = (verb: string, target: string) => () => findRoute(routes, verb, parseRequestTarget(target));

test('only annotated routes exist, with any method', () => {
  for (const target of [
    ...['/', '/api', '/api/v1', '/api/v1/', '/api/v2/filing', '/API/v1/filing'],
    ...['/api/v1/filing/', '/api/v1/Filing', '/api/v1/filings', '/api/v1/filing/AS-2026-000001/'],
    ...['/api/v1/filing/AS-2026-000001/provenance', '/api/v1/provenance', '/api/v1/provenance/'],
    ...['/api/v1/provenance/a/b', '/api/v1/provenance/a/', '/api/v1/escrow/', '/api/v1/escrow/ES-2026-0000/'],
    ...['/api/v1/escrow/ES-2026-0000/cancel', '/api/v1/escrow/ES-2026-0000/Release'],
    ...['/api/v1/escrow/ES-2026-0000/release/', '/artseal.v1.FilingService/CreateFiling'],
    '/artseal.v1.AdminService/ListKeys',
    '/artseal.v1.ReviewService/ListOrders',
  ]) {
    for (const verb of ['GET', 'POST', 'PUT'])
      assert.throws(find(verb, target), apiError('NOT_FOUND', /route/), `${verb} ${target}`);
  }
});

test('HEAD is answered without a body, and the connection stays open', async () => {
  const target = '/api/v1/filing';
  const head = () =>
    rawRequest('HEAD', target, { Host: 'x', ...headersOf(platform, { method: 'HEAD', target }) });
  const bytes = Buffer.concat([head(), head()]);
  const { answers } = await rawExchange(service.publicUrl, bytes, { count: 2, head: true });
  assert.deepEqual(
    answers.map(({ status, headers: { allow } }) => [status, allow]),
    Array.from({ length: 2 }, () => [405, 'GET, POST']),
  );
});

/** The properties of a method of a test schema. */
interface MethodShape {
  readonly rule?: Partial<HttpRule>;
  readonly streams?: boolean;
  readonly input?: DescriptorProto;
}

const { INT32, INT64, STRING, DOUBLE, BYTES, UINT64, MESSAGE } = FieldDescriptorProto_Type;
const { OPTIONAL, REPEATED } = FieldDescriptorProto_Label;

const messageOf = (name: string, fields: Record<string, FieldDescriptorProto_Type>): DescriptorProto =>
  create(DescriptorProtoSchema, {
    name,
    field: Object.entries(fields).map(([field, type], index) =>
      create(FieldDescriptorProtoSchema, {
        name: field,
        number: index + 1,
        type,
        label: OPTIONAL,
        jsonName: field.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
      }),
    ),
  });

/** The response of every method of a test schema. */
const answerProto = create(DescriptorProtoSchema, {
  name: 'Answer',
  field: [
    { name: 'thing', number: 1, type: MESSAGE, typeName: '.t.Thing', jsonName: 'thing' },
    { name: 'count', number: 2, type: INT32, jsonName: 'count' },
    { name: 'things', number: 3, type: MESSAGE, typeName: '.t.Thing', jsonName: 'things', label: REPEATED },
  ].map((field) => create(FieldDescriptorProtoSchema, { label: OPTIONAL, ...field })),
});

/** A service of a test schema. */
function serviceOf(methods: Record<string, MethodShape>): DescService {
  const things = Object.entries(methods).map(([name, { rule, streams = false, input }]) => {
    const options = create(MethodOptionsSchema);
    if (rule !== undefined) setExtension(options, http, create(HttpRuleSchema, rule as HttpRule));
    const request = {
      ...(input ?? messageOf('', { thing_no: STRING, count: INT32, total: INT64 })),
      name: `${name}Request`,
    };
    const method = create(MethodDescriptorProtoSchema, {
      name,
      inputType: `.t.${name}Request`,
      outputType: '.t.Answer',
      serverStreaming: streams,
      options,
    });
    return { request, method };
  });
  const file = create(FileDescriptorProtoSchema, {
    name: 't.proto',
    package: 't',
    syntax: 'proto3',
    messageType: [
      answerProto,
      messageOf('Thing', { thing_no: STRING }),
      ...things.map(({ request }) => request),
    ],
    service: [
      create(ServiceDescriptorProtoSchema, { name: 'T', method: things.map(({ method }) => method) }),
    ],
  });
  const found = createFileRegistry(create(FileDescriptorSetSchema, { file: [file] })).getService('t.T');
  assert.ok(found);
  return found;
}

const get = (value: string, more: object = {}) => ({
  rule: { pattern: { case: 'get' as const, value }, ...more },
});
const post = (value: string, body = '*') => ({ rule: { pattern: { case: 'post' as const, value }, body } });

test('a method without an annotation has no route', () => {
  assert.deepEqual(createRoutes([serviceOf({ Hidden: {} })]), []);
});

test('a literal segment takes precedence over a variable one, in any order of declaration', () => {
  const [variable, literal] = [get('/api/v1/things/{thing_no}'), get('/api/v1/things/newest')];
  for (const methods of [
    { One: variable, Newest: literal },
    { Newest: literal, One: variable },
  ]) {
    const routes = createRoutes([serviceOf(methods)]);
    const found = (target: string) => findRoute(routes, 'GET', parseRequestTarget(target)).method.name;
    assert.equal(found('/api/v1/things/newest'), 'Newest');
    assert.equal(found('/api/v1/things/oldest'), 'One');
    assert.equal(found('/api/v1/things/zzz'), 'One');
  }
});

test('variables get their segment decoded, and never an empty one', () => {
  const routes = createRoutes([serviceOf({ One: get('/api/v1/things/{thing_no}/parts/{count}') })]);
  const target = parseRequestTarget('/api/v1/things/a%20b/parts/7');
  const { message } = findRoute(routes, 'GET', target).read(target, Buffer.alloc(0));
  assert.partialDeepStrictEqual(message, { thingNo: 'a b', count: 7 });
  const notFound = apiError('NOT_FOUND');
  for (const target of ['/api/v1/things/a/parts', '/api/v1/things/a/parts/', '/api/v1/things/a/part/7']) {
    assert.throws(() => findRoute(routes, 'GET', parseRequestTarget(target)), notFound);
  }
});

test('a path with several methods allows all of them, sorted', () => {
  const methods = { Read: get('/api/v1/things/{thing_no}'), Make: post('/api/v1/things/{thing_no}') };
  const routes = createRoutes([serviceOf(methods)]);
  assert.throws(
    () => findRoute(routes, 'DELETE', parseRequestTarget('/api/v1/things/a')),
    (error) => {
      apiError('METHOD_NOT_ALLOWED', /GET, POST/)(error);
      assert.deepEqual((error as ApiError).hints.allow, ['GET', 'POST']);
      return true;
    },
  );
});

test('an additional binding is another route to the same method', () => {
  const { rule } = get('/api/v1/things/{thing_no}');
  const additional = {
    ...post('/api/v1/things').rule,
    additionalBindings: [create(HttpRuleSchema, rule as HttpRule)],
  };
  const routes = createRoutes([serviceOf({ Both: { rule: additional } })]);
  assert.deepEqual(routes.map(({ verb }) => verb).sort(), ['GET', 'POST']);
});

test('fields outside the path are read from the query of a GET and from the body of a POST', () => {
  const routes = createRoutes([serviceOf({ Read: get('/r/{thing_no}'), Make: post('/m/{thing_no}') })]);
  const read = (verb: string, target: string, body = '') => {
    const parsed = parseRequestTarget(target);
    const { message, violations } = findRoute(routes, verb, parsed).read(parsed, Buffer.from(body));
    const { $typeName: _, ...fields } = message as unknown as Record<string, unknown>;
    return { fields, broken: violations.map(({ field }) => field) };
  };
  assert.deepEqual(read('GET', '/r/a?count=7&total=9007199254740991'), {
    fields: { thingNo: 'a', count: 7, total: 9007199254740991n },
    broken: [],
  });
  assert.deepEqual(read('GET', '/r/a?count=7&count=8').broken, ['count']);
  assert.deepEqual(read('GET', '/r/a?count=x&total=1.5&thingNo=b&thing_no=c').broken, [
    'count',
    'total',
    'thingNo',
    'thing_no',
  ]);
  assert.deepEqual(read('GET', '/r/a?count=2147483648').broken, ['count']);
  assert.deepEqual(read('POST', '/m/a', '{"count":-2147483648,"total":-9007199254740991}'), {
    fields: { thingNo: 'a', count: -2147483648, total: -9007199254740991n },
    broken: [],
  });
  assert.deepEqual(read('POST', '/m/a?count=7', '{"thingNo":"b"}').broken, ['count', 'thingNo']);
});

test('the body of a response is the whole message, or the field that the annotation names', () => {
  const part = get('/b', { responseBody: 'thing' });
  const [all, one] = createRoutes([serviceOf({ All: get('/a'), One: part })]);
  assert.ok(all && one);
  const thing = { thingNo: 'a' };
  const answer = create(all.method.output, { thing, count: 7, things: [] } as Record<string, unknown>);
  assert.deepEqual(all.write(answer), { thing, count: 7, things: [] });
  assert.deepEqual(one.write(answer), thing);
  assert.throws(() => one.write(create(one.method.output)), /is not set/);
});

const unservable: readonly (readonly [what: string, shape: MethodShape])[] = [
  ['a stream', { ...get('/a'), streams: true }],
  [
    'a custom verb',
    { rule: { pattern: { case: 'custom', value: { kind: 'LOCK', path: '/a' } } } as Partial<HttpRule> },
  ],
  ['no verb at all', { rule: {} }],
  ['a body that is one field', post('/a', 'thing_no')],
  ['a response body that is no field', get('/a', { responseBody: 'nothing' })],
  ['a response body that is no message', get('/a', { responseBody: 'count' })],
  ['a response body that is a list', get('/a', { responseBody: 'things' })],
  ['a template without its slash', get('a')],
  ['a variable that is no field', get('/a/{nothing}')],
  ['a double', { ...post('/a'), input: messageOf('', { weight: DOUBLE }) }],
  ['bytes', { ...post('/a'), input: messageOf('', { image: BYTES }) }],
  ['an unsigned 64-bit integer', { ...post('/a'), input: messageOf('', { total: UINT64 }) }],
];

for (const [what, shape] of unservable) {
  test(`an annotation that the public API does not support throws: ${what}`, () => {
    assert.throws(() => createRoutes([serviceOf({ Odd: shape })]), Error);
  });
}
