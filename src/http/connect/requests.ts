import { type DescEnum, type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { base64Decode } from '@bufbuild/protobuf/wire';
import { ApiError } from '../../domain/reason.ts';
import { rejectViolations, type Violation, wellFormedRule } from '../../domain/violation.ts';
import {
  integerOf,
  JsonNumber,
  type JsonObject,
  type JsonValue,
  jsonText,
  parseJsonObject,
  shownName,
  typeRules,
  wordRule,
} from '../../lib/strict-json.ts';

/** The longest deadline of a call, in milliseconds. */
export const deadlineMsMax = 60_000;

/** Milliseconds of the units of grpc-timeout (gRPC over HTTP/2, "Timeout"). */
const unitsMs: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/**
 * Shortens the deadline in the headers of a request to `deadlineMsMax`: Connect-Timeout-Ms (Connect protocol) and
 * grpc-timeout (gRPC, gRPC-Web). The library rejects malformed values.
 */
export function shortenDeadline(headers: Headers): void {
  const [connectMs] = /^[0-9]{1,10}$/.exec(headers.get('Connect-Timeout-Ms') ?? '') ?? [];
  if (Number(connectMs) > deadlineMsMax) headers.set('Connect-Timeout-Ms', String(deadlineMsMax));
  const [, amount, unit = ''] = /^([0-9]{1,8})([HMSmun])$/.exec(headers.get('grpc-timeout') ?? '') ?? [];
  if (Number(amount) * (unitsMs[unit] ?? 0) > deadlineMsMax) headers.set('grpc-timeout', `${deadlineMsMax}m`);
}

/** The longest target of a Connect GET, path and query, in bytes. */
const targetBytesMax = 4_096;

/** The parameters of a Connect GET (Connect protocol, "Unary-Get-Request"). */
const parameters = ['connect', 'encoding', 'message', 'base64', 'compression'];

/**
 * Checks the target of a Connect GET. The library reads the query leniently: it replaces bytes that are not UTF-8 by U+FFFD, and
 * uses the first of repeated parameters. Throws BAD_REQUEST_TARGET, and UNSUPPORTED_MEDIA_TYPE for an unknown encoding.
 */
export function checkGetQuery(target: string): void {
  if (target.length > targetBytesMax) {
    throw rejectedTarget(
      `The target of a GET must have at most ${targetBytesMax} bytes; send a longer message with POST`,
    );
  }
  const values = new Map<string, string>();
  const query = target.split('?').slice(1).join('?');
  for (const part of query === '' ? [] : query.split('&')) {
    const [name = '', ...value] = part.split('=');
    if (!parameters.includes(name)) {
      const shown = name === '' ? 'a parameter without a name' : `the parameter ${shownName(name)}`;
      throw rejectedTarget(`The query has ${shown}; it takes ${parameters.join(', ')}`);
    }
    if (values.has(name)) throw rejectedTarget(`The query parameter ${name} is repeated`);
    values.set(name, decoded(name, value.join('=')));
  }
  const { connect = 'v1', encoding = '', message, base64 } = Object.fromEntries(values);
  if (connect !== 'v1') throw rejectedTarget('The query parameter connect must be v1');
  if (message === undefined) throw rejectedTarget('The query parameter message is required');
  if (base64 !== undefined && !(base64 === '1' && isBase64(message))) {
    throw rejectedTarget('The query parameter base64 must be 1, and message must be base64 then');
  }
  if (!['json', 'proto'].includes(encoding)) {
    throw new ApiError('UNSUPPORTED_MEDIA_TYPE', 'The query parameter encoding must be json or proto.');
  }
}

function rejectedTarget(what: string): ApiError {
  return new ApiError('BAD_REQUEST_TARGET', `${what}.`);
}

function decoded(name: string, value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    throw rejectedTarget(`The query parameter ${name} must be UTF-8, with escapes of two hex digits`);
  }
}

function isBase64(text: string): boolean {
  try {
    return base64Decode(text) !== undefined;
  } catch {
    return false;
  }
}

/**
 * The options by which the Connect library reads the JSON of a message, in all its protocols and in the query of a GET: strictly.
 * Throws INVALID_JSON like the public API; VALIDATION_FAILED for unknown members, values of
 * another type, and numbers that would be rounded. A number may be a string of decimal digits (ProtoJSON). Above 2^53-1, where
 * JSON readers round, it must be one.
 */
export function strictProtoJson(desc: DescMessage) {
  const decode = (bytes: Uint8Array = new Uint8Array()) => {
    const object = parseJsonObject(bytes);
    rejectViolations(violationsOf(desc, object));
    // Rewritten, because JSON.parse of V8 14.6 may confuse names with escapes.
    return jsonText(object);
  };
  return { ignoreUnknownFields: false as const, textDecoder: { decode } };
}

function violationsOf(desc: DescMessage, object: JsonObject): Violation[] {
  return Array.from(object).flatMap(([name, value]) => {
    const field = desc.fields.find((candidate) => candidate.jsonName === name || candidate.name === name);
    if (field === undefined) return [{ field: shownName(name), rule: 'is not part of this request' }];
    return violationsIn(field, value);
  });
}

function violationsIn(field: DescField, value: JsonValue): Violation[] {
  // null means the default (ProtoJSON). The library checks maps.
  if (value === null || field.fieldKind === 'map') return [];
  if (field.fieldKind !== 'list') return violationsInSingle(field, value);
  if (!Array.isArray(value)) return [{ field: field.jsonName, rule: typeRules.array }];
  return value.flatMap((item) => violationsInSingle(field, item));
}

function violationsInSingle(field: DescField, value: JsonValue): Violation[] {
  if (field.message !== undefined && value instanceof Map) return violationsOf(field.message, value);
  const rule = field.message === undefined ? brokenBy(field, value) : typeRules.object;
  return rule === undefined ? [] : [{ field: field.jsonName, rule }];
}

/** The rule of a field's type that a value breaks. The library checks bytes and floating-point numbers. */
function brokenBy({ enum: words, scalar }: DescField, value: JsonValue): string | undefined {
  if (words !== undefined && !(value instanceof JsonNumber)) return brokenWord(words, value);
  switch (scalar) {
    case ScalarType.STRING:
      if (typeof value !== 'string') return typeRules.string;
      return value.isWellFormed() ? undefined : wellFormedRule;
    case ScalarType.BOOL:
      return typeof value === 'boolean' ? undefined : typeRules.boolean;
    case ScalarType.BYTES:
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return undefined;
    default:
      return brokenInteger(value);
  }
}

function brokenWord({ values }: DescEnum, value: JsonValue): string | undefined {
  return values.some(({ name }) => name === value) ? undefined : wordRule(values);
}

const safeMax = BigInt(Number.MAX_SAFE_INTEGER);
const decimalDigits = /^-?(0|[1-9][0-9]*)$/;

function brokenInteger(value: JsonValue): string | undefined {
  if (typeof value === 'string')
    return decimalDigits.test(value) ? undefined : `${typeRules.integer} in decimal digits`;
  const number = value instanceof JsonNumber ? integerOf(value.text, safeMax) : undefined;
  if (number === undefined) return typeRules.integer;
  if (number > safeMax || number < -safeMax) return `must be sent as a string of digits beyond ${safeMax}`;
  return undefined;
}
