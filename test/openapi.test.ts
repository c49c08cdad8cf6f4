import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { hash, randomUUIDv7 } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import {
  create,
  type DescField,
  type DescMessage,
  type DescMethod,
  getOption,
  ScalarType,
} from '@bufbuild/protobuf';
import type { WebhookEvent } from '../clients/typescript/src/webhook.ts';
import { CreateEscrowRequestSchema } from '../gen/artseal/v1/escrow_pb.ts';
import { CreateFilingRequestSchema } from '../gen/artseal/v1/filing_pb.ts';
import { http } from '../gen/google/api/annotations_pb.ts';
import { HttpBodySchema } from '../gen/google/api/httpbody_pb.ts';
import { clockDifferenceMaxS, credentialHeaders } from '../src/api/authentication.ts';
import { createPaging, pageSize } from '../src/api/services/paging.ts';
import { settings } from '../src/config/config.ts';
import { createCalendar } from '../src/domain/calendar.ts';
import { tiers } from '../src/domain/caller.ts';
import { escrowId, escrowSequenceMax } from '../src/domain/escrow-id.ts';
import { amountMin, checkTerms, clearing, partyIdBounds } from '../src/domain/escrow-terms.ts';
import { eventTypes } from '../src/domain/event.ts';
import {
  artworkTextBounds,
  checkArtwork,
  filingNumber,
  filingSequenceMax,
  priceMin,
  retentionYears,
} from '../src/domain/filing.ts';
import { moneyMax } from '../src/domain/money.ts';
import { type Reason, reasons } from '../src/domain/reason.ts';
import { checkText, deceptiveCharacterRule } from '../src/domain/text.ts';
import { everyType } from '../src/domain/webhook.ts';
import { bodyBytesMax } from '../src/http/listen/open-calls.ts';
import { jsonType, rateLimitHeaders, targetBytesMax } from '../src/http/rest/http-message.ts';
import { createRoutes, type Route } from '../src/http/rest/routes.ts';
import { reconciliationLimits } from '../src/payments/reconciliation/limits.ts';
import { partyPrefixes } from '../src/payments/simulated/provider.ts';
import { eventPageMax } from '../src/store/event-commands.ts';
import { idempotencyRetentionS, nonceRetentionS } from '../src/store/store.ts';
import { createManualClock } from './support/clock.ts';
import { exampleSalted } from './support/evidence-example.ts';
import {
  type Answered,
  assertDocumented,
  type Content,
  findInstruction,
  type LiveAnswer,
  misfits,
  type Operation,
  openApi,
  type Parameter,
  type Schema,
} from './support/openapi.ts';
import { publishAll } from './support/publication.ts';
import { startService } from './support/service.ts';
import { services } from './support/services.ts';
import { documentedSignature, type SignedRequest, send } from './support/signed-request.ts';

const root = join(import.meta.dirname, '..');
const routes = createRoutes(services);
const { description } = openApi.info;
const { schemas, headers: headerComponents, securitySchemes } = openApi.components;

/** A member that must be there, of anything that is looked up by name. */
function member<T>(members: Readonly<Record<string, T>> | undefined, name: string): T {
  const found = members?.[name];
  assert.ok(found !== undefined, `openapi.yaml has no ${name}`);
  return found;
}

const propertyOf = (schema: string, name: string): Schema => member(member(schemas, schema).properties, name);

/** The template of a route with the documented names of its variables. */
function pathOf({ template, method }: Route): string {
  const jsonName = (name: string) => method.input.fields.find((field) => field.name === name)?.jsonName;
  return template.replaceAll(/\{(\w+)\}/g, (_, name) => `{${jsonName(name)}}`);
}

const writes = ({ verb }: Route): boolean => verb !== 'GET';

function operationOf(route: Route): Operation {
  return member(member(openApi.paths, pathOf(route)), route.verb.toLowerCase());
}

const jsonSchemaOf = (content: Content): Schema => member(content, jsonType).schema;

test('the example of each type of event has the members of the type', () => {
  const bodies = Object.entries(openApi.webhooks).map(([type, { post }]) => {
    const { schema, example } = member(post.requestBody?.content, jsonType);
    assert.deepEqual(misfits(schema, example), []);
    assert.deepEqual(schema.required, ['type', 'timestamp', 'data']);
    assert.equal((example as WebhookEvent).type, type);
    assert.equal((example as WebhookEvent).data.type, type);
    return [type, Object.keys((example as WebhookEvent).data).slice(4)];
  });
  const order = ['filingNo', 'escrowId', 'state'];
  const others: Readonly<Record<string, readonly string[]>> = {
    'filing.created': ['filingNo'],
    'provenance.transferred': ['filingNo'],
    'key.rotated': ['keyId'],
    'usage.threshold': ['month', 'percent'],
    'webhook.disabled': ['webhookId'],
    'webhook.test': ['webhookId'],
  };
  assert.deepEqual(
    bodies,
    [...eventTypes, 'webhook.test'].map((type) => [type, others[type] ?? order]),
  );
});

test('the document is OpenAPI 3.1, of this version, for a sandbox at the default address', () => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  assert.match(openApi.openapi, /^3\.1\./);
  assert.equal(openApi.info.version, version);
  assert.deepEqual(
    openApi.servers.map(({ url }) => url),
    [`http://${settings.publicAddress.fallback}`],
  );
});

/** The paths that need no signature. */
const unsignedPaths = [
  '/healthz',
  '/readyz',
  '/version',
  '/evidence/{token}',
  '/log/checkpoint',
  '/log/vkey',
];

test('the operations are those of the annotations, named after their methods', () => {
  const documented = Object.entries(openApi.paths)
    .filter(([path]) => !unsignedPaths.includes(path))
    .flatMap(([path, verbs]) =>
      Object.entries(verbs).map(([verb, { operationId }]) => `${verb.toUpperCase()} ${path} ${operationId}`),
    );
  const annotated = routes.map((route) => `${route.verb} ${pathOf(route)} ${route.method.localName}`);
  assert.deepEqual(documented.sort(), annotated.sort());
});

test('every call needs the four headers together', () => {
  const names = Object.values(securitySchemes).map(({ name }) => name);
  assert.deepEqual(names, Object.values(credentialHeaders));
  for (const scheme of Object.values(securitySchemes)) {
    assert.deepEqual([scheme.type, scheme.in], ['apiKey', 'header']);
  }
  assert.deepEqual(openApi.security.map(Object.keys), [Object.keys(securitySchemes)]);
});

/** Names and types of the members of a JSON value, to compare a message with a schema. */
type Shape = string | readonly Shape[] | { readonly [name: string]: Shape };

const oneOf = (names: readonly string[]) => `one of ${[...names].sort().join(', ')}`;

/** The name of a member, with a question mark if it is absent at times. */
const marked = (name: string, isOptional: boolean) => (isOptional ? `${name}?` : name);

/** Messages are absent if they are not set: of evidence, the time stamp is the only one. */
function shapeOfMessage({ fields }: DescMessage): Shape {
  return Object.fromEntries(
    fields.map((field) => [
      marked(field.jsonName, field.proto.proto3Optional || field.jsonName === 'timeStamp'),
      shapeOfField(field),
    ]),
  );
}

function shapeOfField(field: DescField): Shape {
  return field.fieldKind === 'list' ? [shapeOfSingle(field)] : shapeOfSingle(field);
}

function shapeOfSingle(field: DescField): Shape {
  if (field.message !== undefined) return shapeOfMessage(field.message);
  if (field.enum !== undefined) {
    return oneOf(field.enum.values.filter(({ number }) => number !== 0).map(({ name }) => name));
  }
  const scalars: { readonly [Type in ScalarType]?: string } = {
    [ScalarType.STRING]: 'string',
    [ScalarType.BOOL]: 'boolean',
    [ScalarType.INT32]: 'integer int32',
    [ScalarType.INT64]: 'integer int64',
  };
  return (field.scalar && scalars[field.scalar]) ?? `${field} of an unknown type`;
}

function shapeOfSchema({
  type = 'no type',
  format,
  items,
  properties = {},
  required = [],
  ...schema
}: Schema): Shape {
  if (type === 'object') {
    const members = Object.entries(properties);
    return Object.fromEntries(
      members.map(([name, member]) => [marked(name, !required.includes(name)), shapeOfSchema(member)]),
    );
  }
  if (type === 'array' && items !== undefined) return [shapeOfSchema(items)];
  // Types of events are texts, since there will be more.
  if (schema.enum !== undefined && !isDeepStrictEqual(schema.enum, [everyType, ...eventTypes]))
    return oneOf(schema.enum);
  return type === 'integer' ? `${type} ${format}` : type;
}

/** The message of the response: that of the method, or the one in it that its annotation names. */
function answerOf(method: DescMethod): DescMessage {
  const { responseBody } = getOption(method, http);
  if (responseBody === '') return method.output;
  const { message } = method.output.fields.find(({ name }) => name === responseBody) ?? {};
  assert.ok(message !== undefined, `${method.output} has no message ${responseBody}`);
  return message;
}

for (const route of routes) {
  const { localName, input } = route.method;
  const output = answerOf(route.method);
  const operation = operationOf(route);

  test(`${localName} takes the fields of ${input.name}, from the path, the query or the body`, () => {
    const taken = input.fields.map((field) => {
      const inPath = route.template.includes(`{${field.name}}`);
      const place = inPath ? 'path' : route.body === 'REQUIRED' ? 'body' : 'query';
      return [place, field.jsonName, inPath, shapeOfField(field)];
    });
    const { parameters = [], requestBody } = operation;
    const inTarget = parameters.filter((parameter) => parameter.in !== 'header');
    const { properties = {} } = requestBody === undefined ? {} : jsonSchemaOf(requestBody.content);
    assert.deepEqual(
      [
        ...inTarget.map(({ in: place, name, required, schema }) => [
          place,
          name,
          required,
          shapeOfSchema(schema),
        ]),
        ...Object.entries(properties).map(([name, schema]) => ['body', name, false, shapeOfSchema(schema)]),
      ],
      taken,
    );
    // A body that may be left out is not documented: of one, generated Go clients send null.
    assert.equal(requestBody?.required, route.body === 'REQUIRED' || undefined);
  });

  test(`${localName} answers the fields of ${output.name}`, () => {
    const { content } = member(operation.responses, '200');
    if (output === HttpBodySchema) return assert.equal(Object.hasOwn(content, jsonType), false);
    const schema = jsonSchemaOf(content);
    assert.deepEqual(shapeOfSchema(schema), shapeOfMessage(output));
  });
}

/** Responses that never get further members. */
const closedAnswers = [
  ...['FilingReceipt', 'Provenance', 'ProvenanceRecord', 'EscrowReceipt', 'ErrorResponse'],
  ...['EvidenceBundle', 'EvidenceTimeStamp', 'Disclosed', 'DisclosedMember', 'Attachment'],
];

test('requests and the documented responses are closed; other responses may get further members', () => {
  const operations = Object.values(openApi.paths).flatMap((verbs) => Object.values(verbs));
  const requests = operations.flatMap(({ requestBody }) =>
    requestBody === undefined ? [] : [jsonSchemaOf(requestBody.content)],
  );
  assert.ok(requests.length > 0);
  for (const request of requests) assert.equal(request.additionalProperties, false);
  for (const [name, schema] of Object.entries(schemas)) {
    const isRequest = requests.some((request) => isDeepStrictEqual(request, schema));
    if (schema.type !== 'object' || isRequest) continue;
    assert.equal(schema.additionalProperties, !closedAnswers.includes(name), name);
  }
});

test('a request requires the members without which the service rejects it', () => {
  const filing = checkArtwork(create(CreateFilingRequestSchema));
  const escrow = checkTerms({ ...create(CreateEscrowRequestSchema), type: undefined });
  for (const [name, required] of Object.entries({
    FilingRequest: filing.map(({ field }) => field),
    EscrowRequest: escrow.map(({ field }) => field),
    WebhookRequest: ['url'],
    ...{ WebhookChange: [], WebhookRotation: [], RedeliveryRequest: [], EvidenceLinkRequest: [] },
  })) {
    assert.deepEqual([...(member(schemas, name).required ?? [])].sort(), required.sort(), name);
  }
  for (const name of ['ErrorResponse', 'Version']) {
    const { required, properties = {} } = member(schemas, name);
    assert.deepEqual(required, Object.keys(properties), name);
  }
});

test('texts and money are bounded as in the domain', () => {
  const lengths = (schema: string, name: string) => {
    const { minLength: min, maxLength: max } = propertyOf(schema, name);
    return { min, max };
  };
  for (const [name, bounds] of Object.entries(artworkTextBounds))
    for (const schema of ['FilingRequest', 'Filing']) assert.deepEqual(lengths(schema, name), bounds, name);
  assert.deepEqual(lengths('Provenance', 'author'), artworkTextBounds.author);
  for (const schema of ['EscrowRequest', 'Escrow'])
    for (const name of ['buyerId', 'sellerId']) assert.deepEqual(lengths(schema, name), partyIdBounds);

  const range = (schema: string, name: string) => {
    const { minimum, maximum } = propertyOf(schema, name);
    return [minimum, maximum];
  };
  for (const schema of ['FilingRequest', 'Filing'])
    assert.deepEqual(range(schema, 'price'), [Number(priceMin), Number(moneyMax)]);
  for (const schema of ['EscrowRequest', 'EscrowReceipt', 'Escrow'])
    assert.deepEqual(range(schema, 'amount'), [Number(amountMin), Number(moneyMax)]);
});

test('pages and years have the bounds of the service', () => {
  const paging = createPaging(Buffer.alloc(32));
  const anyCaller = { callerId: 1, caller: 'Gallery One' };
  for (const list of [
    ...['/api/v1/filing', '/api/v1/escrow', '/api/v1/webhooks'],
    '/api/v1/webhooks/wh_5f0c9d8e7a4b2c1d/deliveries',
  ]) {
    const parameters = findInstruction('GET', list)?.parameters ?? [];
    const schemaOf = (name: string) => parameters.find((parameter) => parameter.name === name)?.schema ?? {};
    for (const size of [0, 1, pageSize.max]) assert.deepEqual(misfits(schemaOf('pageSize'), size), []);
    for (const size of [-1, pageSize.max + 1]) assert.notDeepEqual(misfits(schemaOf('pageSize'), size), []);
    for (const next of [undefined, 1, Number.MAX_SAFE_INTEGER]) {
      const given = paging.token({ items: [], next }, { pageSize: 0, pageToken: '' }, anyCaller);
      assert.deepEqual(misfits(schemaOf('pageToken'), given), []);
    }
  }
  for (const [schema, name] of Object.entries({
    ...{ FilingPage: 'filings', EscrowPage: 'escrows', WebhookPage: 'webhooks' },
    ...{ EvidenceLinkPage: 'links', DeliveryPage: 'deliveries' },
  }))
    assert.equal(propertyOf(schema, name).maxItems, pageSize.max, schema);
  assert.equal(propertyOf('EventList', 'events').maxItems, eventPageMax);
  const { parameters = [] } = findInstruction('GET', '/api/v1/filing') ?? {};
  const year = parameters.find(({ name }) => name === 'year')?.schema;
  assert.deepEqual([year?.minimum, year?.maximum], [0, 9_999]);
});

const isAscii = /^\p{ASCII}*$/u;

test('a text that the service accepts fits its schema; of ASCII, no other does', () => {
  const bounds = artworkTextBounds.author;
  const codes = [
    ...Array.from({ length: 0x300 }, (_, code) => code),
    ...Array.from({ length: 0x80 }, (_, code) => 0x2000 + code),
    ...[0x3000, 0xd7ff, 0xe000, 0xfeff, 0xffff, 0x1f58c, 0x20bb7, 0xe0001, 0x10ffff],
  ];
  const alone = codes.map((code) => String.fromCodePoint(code));
  const lengths = ['', 'a'.repeat(bounds.max), '🖌'.repeat(bounds.max), '🖌'.repeat(bounds.max + 1)];
  const among = alone.map((character) => `a${character}b`);
  const rejected = [...alone, ...among, ...lengths].filter((value) => {
    const violations = checkText('author', value, bounds);
    const fits = misfits(propertyOf('FilingRequest', 'author'), value).length === 0;
    // The pattern does not know the characters that make one text look like another: the description names them.
    if (deceptiveCharacterRule(value) !== undefined) return violations.length > 0;
    const isCompared = violations.length === 0 || isAscii.test(value) || lengths.includes(value);
    if (isCompared)
      assert.equal(fits, violations.length === 0, `${JSON.stringify(value)} ${violations[0]?.rule}`);
    return !fits;
  });
  assert.ok(rejected.includes(' ') && rejected.includes('a\u007fb') && !rejected.includes('🖌'));
});

test('the patterns mean the same in the regular expressions of all languages that clients are generated for', () => {
  const patterns: string[] = [];
  JSON.stringify(openApi, (name, value) => {
    if (name === 'pattern') patterns.push(value);
    return value;
  });
  assert.notEqual(patterns.length, 0);
  // PCRE has no \u, and Ruby takes \x80 and above for single bytes. Few engines have look-arounds.
  for (const pattern of patterns)
    assert.match(pattern, /^\^(?:\\\.|\\x[0-7][0-9a-f]|(?!\(\?)[\x20-\x5b\x5d-\x7e])*\$$/);
});

test('the three kinds of text exclude the same characters', () => {
  const patterns = ['ShortText', 'LongText', 'PartyId'].map((name) => member(schemas, name).pattern);
  assert.equal(new Set(patterns).size, 1);
});

const key = Buffer.from('key');
const instantMs = 1_795_223_700_500;

/** The schema of a member, and values of it that the service makes or takes and that no response of these tests has. */
const made: readonly (readonly [schema: string, member: string, fit: readonly unknown[]])[] = [
  ['Filing', 'filingNo', [filingNumber(2026, 1), filingNumber(9999, filingSequenceMax)]],
  ['Escrow', 'escrowId', [1, 2, 99, escrowSequenceMax].map((n) => escrowId(2026, n, key))],
  [
    ...(['Filing', 'timestamp'] as const),
    ['UTC', 'Asia/Shanghai', 'America/St_Johns'].map((zone) => createCalendar(zone).timestamp(instantMs)),
  ],
  ['Event', 'type', eventTypes],
  [
    ...(['WebhookRequest', 'url'] as const),
    [
      ...['https://gallery.example', 'https://gallery.example:8443/a@b?c=d', 'HTTPS://[2001:db8::1]/'],
      'http://127.0.0.1/',
    ],
  ],
];

for (const [schema, name, fit] of made) {
  test(`${schema}.${name}: the schema admits what the service makes or takes`, () => {
    for (const value of fit) assert.deepEqual(misfits(propertyOf(schema, name), value), [], String(value));
  });
}

test('the constants of the schemas are those of the domain', () => {
  assert.equal(propertyOf('Escrow', 'clearing').const, clearing);
  assert.equal(propertyOf('Provenance', 'retentionYears').const, retentionYears);
});

test('an Idempotency-Key is 1 to 255 visible ASCII characters, and only writing operations have one', () => {
  for (const route of routes) {
    const parameter = operationOf(route).parameters?.find(({ name }) => name === 'Idempotency-Key');
    assert.equal(parameter !== undefined, writes(route), route.template);
    if (parameter === undefined) continue;
    assert.deepEqual([parameter.in, parameter.required], ['header', false]);
    for (const key of ['k', '!~', 'k'.repeat(255)]) assert.deepEqual(misfits(parameter.schema, key), []);
    for (const key of ['', 'a b', 'é', 'k'.repeat(256)])
      assert.notDeepEqual(misfits(parameter.schema, key), []);
  }
});

test('the error codes are those of the dictionary', () => {
  // A client that cancelled its call gets no response. Only the internal API takes backups.
  const sent = Object.keys(reasons).filter((reason) => !['CANCELLED', 'BACKUP_FAILED'].includes(reason));
  assert.deepEqual(propertyOf('ErrorResponse', 'code').enum, sent);
});

const answersOf = (operation: Operation) =>
  Object.entries(operation.responses).map(([status, answered]) => ({ status: Number(status), answered }));

/** The codes that an error response may have. */
function codesOf({ content }: Answered): Reason[] {
  const schema = jsonSchemaOf(content);
  const narrowed = (schema.allOf ?? []).map(({ properties }) => properties?.code?.enum ?? []);
  return (narrowed.at(-1) ?? []) as Reason[];
}

const errorsOf = (operation: Operation) => answersOf(operation).filter(({ status }) => status !== 200);

/** The reasons that the proto files list for each RPC, by the name of the RPC. */
const statedReasons = ((): ReadonlyMap<string, string[]> => {
  const folder = join(root, 'proto', 'artseal', 'v1');
  const protos = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
  const commented = protos.flatMap((proto) => [...proto.matchAll(/((?: *\/\/.*\n)+) *rpc (\w+)\(/g)]);
  return new Map(
    commented.map(([, comment = '', name = '']) => {
      const [, list = ''] = /Reasons: ([^.]+)\./.exec(comment.replaceAll(/\n? *\/\/ ?/g, ' ')) ?? [];
      return [name, list.split(',').map((reason) => reason.trim())];
    }),
  );
})();

/** The reasons of the pipeline, which any operation may have. */
const reasonsOfPipeline: readonly Reason[] = [
  'BAD_REQUEST_TARGET',
  'AUTH_HEADER_MISSING',
  'AUTH_HEADER_INVALID',
  'TIMESTAMP_EXPIRED',
  'BODY_TOO_LARGE',
  'SIGNATURE_INVALID',
  'KEY_SUSPENDED',
  'NONCE_REUSED',
  'RATE_LIMITED',
  'QUOTA_EXCEEDED',
  'VALIDATION_FAILED',
  'INTERNAL',
  'UNAVAILABLE',
  'TIMEOUT',
];
const reasonsOfBodies: readonly Reason[] = ['UNSUPPORTED_MEDIA_TYPE', 'INVALID_JSON'];
const reasonsOfWrites: readonly Reason[] = [
  'IDEMPOTENCY_KEY_INVALID',
  'IDEMPOTENCY_KEY_REUSED',
  'IDEMPOTENCY_IN_PROGRESS',
];

for (const route of routes) {
  const { localName, name } = route.method;
  const operation = operationOf(route);

  test(`${localName} lists the reasons of its RPC and of the pipeline, each under its status`, () => {
    const stated = statedReasons.get(name) ?? [];
    const expected = new Set([
      ...reasonsOfPipeline.filter((reason) => reason !== 'QUOTA_EXCEEDED' || !route.isFreeOfQuota),
      ...(route.body === 'NONE' ? [] : reasonsOfBodies),
      ...(writes(route) ? reasonsOfWrites : []),
      ...stated,
    ]);
    const listed = errorsOf(operation).flatMap(({ status, answered }) => {
      const codes = codesOf(answered);
      for (const code of codes) assert.equal(reasons[code].http, status, code);
      return codes;
    });
    assert.deepEqual(listed.sort(), [...expected].sort());
  });
}

test('the rate limit headers fit their schemas, with and without a monthly quota', () => {
  const rate = { callsPerSecond: 10, allowed: true, remaining: 7, resetS: 1, retryAfterS: 0 };
  const month = { month: '2026-11', monthS: 2_592_000, remaining: 812, resetS: 1_036_800 };
  for (const limit of [1_000, undefined]) {
    const sent = rateLimitHeaders({ rate, quota: { ...month, limit } });
    assert.deepEqual(misfits(member(headerComponents, 'RateLimit').schema, sent.RateLimit), []);
    assert.deepEqual(
      misfits(member(headerComponents, 'RateLimitPolicy').schema, sent['RateLimit-Policy']),
      [],
    );
  }
});

test('each body has examples, and they fit', () => {
  for (const operation of routes.map(operationOf)) {
    const bodies = [operation.requestBody, ...Object.values(operation.responses)];
    for (const { content } of bodies.filter((body) => body !== undefined)) {
      // A file has no example.
      if (!Object.hasOwn(content, jsonType)) continue;
      const { examples = {} } = member(content, jsonType);
      assert.notDeepEqual(examples, {}, operation.operationId);
      for (const [name, { value }] of Object.entries(examples))
        assert.deepEqual(misfits(jsonSchemaOf(content), value), [], `${operation.operationId} ${name}`);
    }
  }
});

test('examples of parameters and headers fit', () => {
  const parameters = routes.flatMap((route) => operationOf(route).parameters ?? []);
  const described = [...parameters, ...Object.values(headerComponents)].filter(
    ({ example }) => example !== undefined,
  );
  assert.notEqual(described.length, 0);
  for (const { schema, example } of described)
    assert.deepEqual(misfits(schema, example), [], String(example));
});

/** The value of a documented example. */
// biome-ignore lint/suspicious/noExplicitAny: examples have every shape.
function exampleOf(operationId: string, of: 'request' | number, name: string): any {
  const route = routes.find(({ method }) => method.localName === operationId);
  assert.ok(route !== undefined, operationId);
  const { requestBody, responses } = operationOf(route);
  const content = of === 'request' ? requestBody?.content : responses[of]?.content;
  return member(member(content, jsonType).examples, name).value;
}

test('a sandbox returns the responses of the examples', async (t) => {
  const filed = exampleOf('createFiling', 200, 'scroll');
  const clock = createManualClock(Date.parse(filed.timestamp));
  const service = await startService(t, { clock, env: { ARTSEAL_TIME_ZONE: 'Asia/Shanghai' } });
  const platform = await service.platform();
  const call = (target: string, body?: object) => {
    const timestamp = String(Math.floor(clock.nowMs() / 1000));
    return send(service.publicUrl, platform, {
      target,
      timestamp,
      ...(body && { body: JSON.stringify(body) }),
    });
  };
  const resolve = (escrowId: string, verb: 'release' | 'refund') => {
    const timestamp = String(Math.floor(clock.nowMs() / 1000));
    const target = `/api/v1/escrow/${escrowId}/${verb}`;
    return send(service.publicUrl, platform, { method: 'POST', target, timestamp });
  };
  const filing = await call('/api/v1/filing', exampleOf('createFiling', 'request', 'scroll'));
  // As text, since the documented members also have a documented order.
  assert.equal(filing.text, JSON.stringify(filed));
  const provenance = () => call(`/api/v1/provenance/${filed.filingNo}`);
  assert.equal((await provenance()).text, JSON.stringify(exampleOf('getProvenance', 200, 'filed')));

  const escrow = await call('/api/v1/escrow', exampleOf('createEscrow', 'request', 'sale'));
  const { escrowId } = escrow.json;
  assert.equal(escrow.text, JSON.stringify({ ...exampleOf('createEscrow', 200, 'held'), escrowId }));
  const { caller } = platform;
  const order = { ...exampleOf('getEscrow', 200, 'held'), escrowId, caller };
  assert.deepEqual((await call(`/api/v1/escrow/${escrowId}`)).json, order);
  const page = { ...exampleOf('listEscrows', 200, 'page'), escrows: [order] };
  assert.deepEqual((await call('/api/v1/escrow?state=FROZEN')).json, page);
  const scroll = { ...exampleOf('getFiling', 200, 'scroll'), caller };
  assert.deepEqual((await call(`/api/v1/filing/${filed.filingNo}`)).json, scroll);
  const filings = { ...exampleOf('listFilings', 200, 'page'), filings: [scroll] };
  assert.deepEqual((await call('/api/v1/filing?year=2026')).json, filings);

  const sold = exampleOf('getProvenance', 200, 'sold');
  clock.leap(Date.parse(sold.records[1].at) - Date.parse(sold.records[0].at));
  const released = await resolve(escrowId, 'release');
  assert.deepEqual(released.json, { ...exampleOf('releaseEscrow', 200, 'released'), escrowId, caller });
  assert.deepEqual((await provenance()).json, sold);

  const again = await call('/api/v1/escrow', exampleOf('createEscrow', 'request', 'sale'));
  const refunded = await resolve(again.json.escrowId, 'refund');
  const example = { ...exampleOf('refundEscrow', 200, 'refunded'), caller };
  const { escrowId: otherId, timestamp, history, ...rest } = refunded.json;
  const { escrowId: _, timestamp: __, history: shown, ...restShown } = example;
  assert.deepEqual(rest, restShown);
  const states = (changes: { state: string }[]) => changes.map(({ state }) => state);
  assert.deepEqual([otherId, states(history)], [again.json.escrowId, states(shown)]);
  assert.equal(history[0].at, timestamp);
});

test('the example of evidence is that of the example log', () => {
  assert.deepEqual(exampleOf('getEvidence', 200, 'filing'), exampleSalted());
});

/** The requests that the examples of the document form, in its order; none for a path without an example. */
function exampleRequests(): SignedRequest[] {
  const operations = Object.entries(openApi.paths).flatMap(([path, verbs]) =>
    Object.entries(verbs).map(([verb, operation]) => ({ path, method: verb.toUpperCase(), operation })),
  );
  return operations.flatMap(({ path, method, operation: { parameters = [], requestBody } }) => {
    const given = (place: Parameter['in']): [string, string][] =>
      parameters
        .filter((parameter) => parameter.in === place && parameter.example !== undefined)
        .map(({ name, example }) => [name, String(example)]);
    const filled = given('path').reduce((target, [name, value]) => target.replace(`{${name}}`, value), path);
    if (filled.includes('{')) return [];
    const query = new URLSearchParams(given('query')).toString();
    const request = {
      method,
      target: query === '' ? filled : `${filled}?${query}`,
      headers: Object.fromEntries(given('header')),
    };
    if (requestBody === undefined) return [request];
    const examples = Object.values(member(requestBody.content, jsonType).examples ?? {});
    return examples.map(({ value }) => ({ ...request, body: JSON.stringify(value) }));
  });
}

test('a new sandbox accepts every example of a request', async (t) => {
  const clock = createManualClock(Date.parse(exampleOf('createFiling', 200, 'scroll').timestamp));
  const service = await startService(t, { clock });
  const platform = await service.platform();
  const timestamp = String(Math.floor(clock.nowMs() / 1000));
  const requests = exampleRequests();
  assert.notEqual(requests.length, 0);
  for (const request of requests) {
    await publishAll(service, clock);
    const answer = await send(service.publicUrl, platform, { timestamp, ...request });
    assert.equal(answer.status, 200, `${request.method} ${request.target} ${answer.text}`);
  }
});

test('the signature of the example is that of the values shown', () => {
  const shown = (pattern: RegExp) => pattern.exec(description)?.[1] ?? '';
  const cell = (name: string) => shown(new RegExp(`\\| ${name} \\| \`(.+)\` \\|`));
  const body = shown(/^body='(.+)'$/m);
  const request = { method: shown(/method=(\S+)/), target: shown(/target=(\S+)/), body };
  const signed = { ...request, timestamp: cell('timestamp'), nonce: cell('nonce') };
  assert.equal(cell('signature'), documentedSignature(cell('secret'), signed));
  assert.equal(cell('SHA-256 of the body'), hash('sha256', body));
  const example = exampleOf('createFiling', 'request', 'scroll');
  assert.deepEqual(JSON.parse(body), example);
});

test('the shell commands of the description file an artwork', async (t) => {
  const service = await startService(t);
  const { apiKey, apiSecret } = await service.platform();
  const [, script = ''] = /```sh\n(.+?)```/s.exec(description) ?? [];
  const [server = ''] = openApi.servers.map(({ url }) => url);
  assert.ok(script.includes(server));
  const child = spawn('sh', ['-c', script.replace(server, service.publicUrl)], {
    env: { ...process.env, API_KEY: apiKey, API_SECRET: apiSecret },
  });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  assert.equal(stderr, '');
  assert.match(JSON.parse(stdout).filingNo, /^AS-\d{4}-000001$/);
});

test('the numbers and names in the text are those of the service', () => {
  const keyed = findInstruction('POST', '/api/v1/filing')?.parameters?.find(
    ({ name }) => name === 'Idempotency-Key',
  );
  const prose = description.replaceAll(/\s+/g, ' ');
  const grouped = (value: number) => value.toLocaleString('en-US');
  const tierRows = Object.entries(tiers).map(([tier, { callsPerSecond, monthlyQuota }]) => {
    const monthly = monthlyQuota === undefined ? 'as agreed' : grouped(monthlyQuota);
    return `| ${tier} | ${callsPerSecond} | ${monthly} |`;
  });
  for (const sentence of [
    `at most ${clockDifferenceMaxS} seconds from the server's clock`,
    `a nonce once in ${nonceRetentionS} seconds`,
    `of at most ${grouped(bodyBytesMax)} bytes`,
    `target has at most ${grouped(targetBytesMax)} bytes`,
    `${settings.currency.fallback} unless its operator chose another`,
    ...tierRows,
  ]) {
    assert.ok(prose.includes(sentence), sentence);
  }
  const escrow = findInstruction('POST', '/api/v1/escrow')?.description ?? '';
  for (const prefix of partyPrefixes) assert.ok(escrow.includes(`\`${prefix}\``), prefix);
  assert.match(keyed?.description ?? '', new RegExp(`kept for ${idempotencyRetentionS / 86_400} days`));
  assert.equal(reconciliationLimits.freezeDeadlineMs, 10 * 60_000);
  assert.ok(prose.includes('not funded within ten minutes is cancelled'));
  assert.ok(prose.includes(`\`pageSize\` is 1 to ${pageSize.max}, or 0 for ${pageSize.default}`));
});

const goodAnswer: LiveAnswer = {
  status: 200,
  headers: {
    'content-type': jsonType,
    'x-request-id': randomUUIDv7(),
    ratelimit: '"qps";r=9;t=1',
    'ratelimit-policy': '"qps";q=10;w=1',
  },
  json: exampleOf('createFiling', 200, 'scroll'),
};

test('an undocumented status, member, header or operation does not pass the check of responses', () => {
  const { json } = goodAnswer;
  const filing = '/api/v1/filing';
  const withHeader = (name: string, value: string | undefined): LiveAnswer => ({
    ...goodAnswer,
    headers: { ...goodAnswer.headers, [name]: value },
  });
  assertDocumented('POST', filing, goodAnswer);
  for (const [target, answer, message] of [
    [filing, { ...goodAnswer, status: 201 }, /no such status/],
    [filing, { ...goodAnswer, json: { ...Object(json), id: 1 } }, /"id"/],
    ['/api/v1/escrow', goodAnswer, /escrowId/],
    [filing, withHeader('ratelimit', undefined), /RateLimit must be/],
    [filing, withHeader('ratelimit', '9'), /RateLimit the value must/],
    [filing, withHeader('content-type', 'text/html'), /Content-Type/],
    ['/api/v2/filing', goodAnswer, /no such operation/],
  ] as const) {
    assert.throws(() => assertDocumented('POST', target, answer), { name: 'AssertionError', message });
  }
});
