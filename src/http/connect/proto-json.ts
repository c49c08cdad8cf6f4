import { type DescEnum, type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { rejectViolations, type Violation, wellFormedRule } from '../../domain/violation.ts';
import { integerOf } from '../../lib/json/integer.ts';
import {
  JsonNumber,
  type JsonObject,
  type JsonValue,
  jsonText,
  parseJsonObject,
  shownName,
} from '../../lib/json/strict-json.ts';
import { typeRules, wordRule } from '../../lib/json/type-rules.ts';

/**
 * The options for reading request messages in ProtoJSON. The Connect library uses them for all its protocols and for the query of
 * a GET.
 */
export interface ProtoJsonReading {
  readonly ignoreUnknownFields: false;
  readonly textDecoder: { decode(bytes?: Uint8Array): string };
}

/**
 * Reads the JSON of a message strictly. Throws INVALID_JSON like the public API; VALIDATION_FAILED for unknown members, values of
 * another type, and numbers that would be rounded. A number may be a string of decimal digits (ProtoJSON). Above 2^53-1, where
 * JSON readers round, it must be one.
 */
export function strictProtoJson(desc: DescMessage): ProtoJsonReading {
  const decode = (bytes: Uint8Array = new Uint8Array()) => {
    const object = parseJsonObject(bytes);
    rejectViolations(violationsOf(desc, object));
    // Rewritten, because JSON.parse of V8 14.6 may confuse names with escapes.
    return jsonText(object);
  };
  return { ignoreUnknownFields: false, textDecoder: { decode } };
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
