import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, type DescMethod, setExtension } from '@bufbuild/protobuf';
import {
  BytesValueSchema,
  DoubleValueSchema,
  MethodOptionsSchema,
  UInt64ValueSchema,
} from '@bufbuild/protobuf/wkt';
import { EventService } from '../../../gen/artseal/v1/event_pb.ts';
import { FilingService } from '../../../gen/artseal/v1/filing_pb.ts';
import { Delivery_Status, Webhook_Status } from '../../../gen/artseal/v1/webhook_pb.ts';
import { http } from '../../../gen/google/api/annotations_pb.ts';
import { type HttpRule, HttpRuleSchema } from '../../../gen/google/api/http_pb.ts';
import type { ApiError } from '../../../src/domain/reason.ts';
import { type HttpResponse, parseRequestTarget } from '../../../src/http/rest/http-message.ts';
import { createRoutes, findRoute } from '../../../src/http/rest/routes.ts';
import { fileScope } from '../../support/file-scope.ts';
import { rawExchange, rawRequest } from '../../support/raw-http.ts';
import { apiError } from '../../support/rejected.ts';
import { startService } from '../../support/service.ts';
import { services } from '../../support/services.ts';
import { headersOf } from '../../support/signed-request.ts';

const service = await startService(fileScope);
const platform = await service.platform();
const routes = createRoutes(services);
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

/** How a method differs from ListEvents. */
type Variant = Partial<DescMethod> & { readonly rule?: Partial<HttpRule> };

/** A service with variants of a method of EventService, each with its annotation. */
function serviceOf(...methods: readonly Variant[]) {
  const { listEvents } = EventService.method;
  const made = methods.map(({ rule, ...changed }) => {
    const options = create(MethodOptionsSchema);
    if (rule !== undefined) setExtension(options, http, create(HttpRuleSchema, rule as HttpRule));
    return { ...listEvents, ...changed, proto: { ...listEvents.proto, options } } as DescMethod;
  });
  return { ...EventService, methods: made };
}

const get = (value: string, more: Partial<HttpRule> = {}) =>
  ({ pattern: { case: 'get', value }, ...more }) as const;
const post = (value: string, body = '*') => ({ pattern: { case: 'post', value }, body }) as const;

test('a method without an annotation has no route', () => {
  assert.deepEqual(createRoutes([serviceOf({})]), []);
});

test('a literal segment takes precedence over a variable one, in any order of declaration', () => {
  const { input } = FilingService.method.getFiling;
  const variable = { name: 'One', input, rule: get('/api/v1/things/{filing_no}') };
  const literal = { name: 'Newest', input, rule: get('/api/v1/things/newest') };
  for (const methods of [
    [variable, literal],
    [literal, variable],
  ]) {
    const routes = createRoutes([serviceOf(...methods)]);
    const found = (target: string) => findRoute(routes, 'GET', parseRequestTarget(target)).method.name;
    assert.equal(found('/api/v1/things/newest'), 'Newest');
    assert.equal(found('/api/v1/things/oldest'), 'One');
    assert.equal(found('/api/v1/things/zzz'), 'One');
  }
});

test('a path with several methods allows all of them, sorted', () => {
  assert.throws(find('PUT', '/api/v1/filing'), (error) => {
    apiError('METHOD_NOT_ALLOWED', /GET, POST/)(error);
    assert.deepEqual((error as ApiError).hints.allow, ['GET', 'POST']);
    return true;
  });
});

test('fields are read from the path, the query of a GET and the body of a POST', () => {
  const read = (verb: string, path: string, body = '') => {
    const target = parseRequestTarget(path);
    const { message, violations } = findRoute(routes, verb, target).read(target, Buffer.from(body));
    const { $typeName: _, ...fields } = message as unknown as Record<string, unknown>;
    return { fields, broken: violations.map(({ field }) => field) };
  };
  const deliveries = '/api/v1/webhooks/a%20b/deliveries';
  assert.deepEqual(read('GET', `${deliveries}?pageSize=7&status=FAILED`), {
    fields: { webhookId: 'a b', pageSize: 7, status: Delivery_Status.FAILED, pageToken: '' },
    broken: [],
  });
  assert.deepEqual(read('GET', `${deliveries}?pageSize=7&pageSize=8`).broken, ['pageSize']);
  assert.deepEqual(read('GET', `${deliveries}?pageSize=x&status=1&webhookId=b&webhook_id=c`).broken, [
    ...['pageSize', 'status', 'webhookId', 'webhook_id'],
  ]);
  assert.deepEqual(read('GET', `${deliveries}?pageSize=2147483648`).broken, ['pageSize']);
  const links = '/api/v1/filing/a/evidence/links';
  assert.partialDeepStrictEqual(read('POST', links, '{"sequence":-2147483648}'), {
    fields: { filingNo: 'a', sequence: -2147483648 },
    broken: [],
  });
  assert.deepEqual(read('POST', `${links}?sequence=7`, '{"filingNo":"b"}').broken, ['sequence', 'filingNo']);
});

test('the body of a response is the whole message, or the field that the annotation names', () => {
  const { method: found, write } = findRoute(routes, 'GET', parseRequestTarget('/api/v1/webhooks/a'));
  const webhook = { webhookId: 'a', url: 'https://a.example', status: Webhook_Status.ENABLED };
  const message = create(found.output, { webhook } as Record<string, unknown>);
  const written = {
    ...webhook,
    status: 'ENABLED',
    eventTypes: [],
    description: '',
    createdAt: '',
    caller: '',
  };
  const bodyOf = (response: HttpResponse) => JSON.parse(String(response.body));
  assert.deepEqual(bodyOf(write(message)), written);
  assert.throws(() => write(create(found.output)), /is not set/);
  const list = findRoute(routes, 'GET', parseRequestTarget('/api/v1/webhooks'));
  const page = create(list.method.output, { webhooks: [webhook] } as Record<string, unknown>);
  assert.deepEqual(bodyOf(list.write(page)), { webhooks: [written], nextPageToken: '' });
});

const { getFiling } = FilingService.method;

const unservable: readonly (readonly [what: string, method: Variant])[] = [
  ['a stream', { ...EventService.method.watchEvents, rule: get('/a') }],
  [
    'a custom verb',
    { rule: { pattern: { case: 'custom', value: { kind: 'LOCK', path: '/a' } } } as Partial<HttpRule> },
  ],
  ['no verb at all', { rule: {} }],
  ['a body that is one field', { rule: post('/a', 'after') }],
  ['a response body that is no field', { rule: get('/a', { responseBody: 'nothing' }) }],
  ['a response body that is no message', { rule: get('/a', { responseBody: 'next' }) }],
  ['a response body that is a list', { rule: get('/a', { responseBody: 'events' }) }],
  ['a template without its slash', { rule: get('a') }],
  ['a variable that is no field', { rule: get('/a/{nothing}') }],
  ['a variable that is no scalar', { input: getFiling.output, rule: get('/a/{filing}') }],
  ['a double', { input: DoubleValueSchema, rule: post('/a') }],
  ['bytes', { input: BytesValueSchema, rule: post('/a') }],
  ['an unsigned 64-bit integer', { input: UInt64ValueSchema, rule: post('/a') }],
];

for (const [what, method] of unservable) {
  test(`an annotation that the public API does not support throws: ${what}`, () => {
    assert.throws(() => createRoutes([serviceOf(method)]), Error);
  });
}
