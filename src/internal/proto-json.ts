import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { refuseViolations, type Violation } from '../domain/violation.ts';
import { integerOf } from '../json/integer.ts';
import {
  JsonNumber,
  type JsonObject,
  type JsonValue,
  jsonText,
  parseJsonObject,
  shownName,
} from '../json/strict-json.ts';

/**
 * How request messages in ProtoJSON are read: `ignoreUnknownFields` and `textDecoder` are options that Connect passes on
 * to where it parses JSON, over each of its protocols and from the query of a GET.
 */
export interface ProtoJsonReading {
  readonly ignoreUnknownFields: false;
  readonly textDecoder: { decode(bytes?: Uint8Array): string };
}

/**
 * Reads the JSON of this message as it was sent or not at all. Throws INVALID_JSON as the REST door does;
 * VALIDATION_FAILED for unknown members and for numbers that would be rounded, taken for others, or are none. A number
 * may be a string of decimal digits (ProtoJSON), and has to be beyond 2^53-1, where JSON readers begin to round.
 */
export function strictProtoJson(desc: DescMessage): ProtoJsonReading {
  const decode = (bytes: Uint8Array = new Uint8Array()) => {
    const object = parseJsonObject(bytes);
    refuseViolations(violationsOf(desc, object));
    // Written anew, for JSON.parse of V8 14.6 at times takes a name with escapes for another.
    return jsonText(object);
  };
  return { ignoreUnknownFields: false, textDecoder: { decode } };
}

function violationsOf(desc: DescMessage, object: JsonObject): Violation[] {
  return Array.from(object).flatMap(([name, value]) => {
    const field = desc.fields.find((candidate) => candidate.jsonName === name || candidate.name === name);
    if (field === undefined) return [{ field: shownName(name), rule: 'is not part of this request' }];
    const values = Array.isArray(value) ? value : [value];
    return values.flatMap((each) => violationsIn(field, each));
  });
}

function violationsIn(field: DescField, value: JsonValue): Violation[] {
  if (field.message !== undefined) return value instanceof Map ? violationsOf(field.message, value) : [];
  const isWord = field.enum !== undefined && typeof value === 'string';
  const rule = isWord || notIntegers.includes(field.scalar) ? undefined : brokenBy(value);
  return rule === undefined ? [] : [{ field: field.jsonName, rule }];
}

/** Types whose JSON the library reads exactly; enums, which may be sent as numbers, have no scalar. */
const notIntegers: readonly (ScalarType | undefined)[] = [
  ScalarType.STRING,
  ScalarType.BYTES,
  ScalarType.BOOL,
  ScalarType.DOUBLE,
  ScalarType.FLOAT,
];
const safeMax = BigInt(Number.MAX_SAFE_INTEGER);
const decimalDigits = /^-?(0|[1-9][0-9]*)$/;

/** The rule of integers that a value breaks; what is no number at all is left to the library. */
function brokenBy(value: JsonValue): string | undefined {
  if (typeof value === 'string' && !decimalDigits.test(value))
    return 'must be a whole number in decimal digits';
  if (!(value instanceof JsonNumber)) return undefined;
  const number = integerOf(value.text, safeMax);
  if (number === undefined) return 'must be a whole number';
  if (number > safeMax || number < -safeMax) return `must be sent as a string of digits beyond ${safeMax}`;
  return undefined;
}
