import { malformed } from '../formats/failure.ts';

/** The values in bundles and leaves: no lists, no fractions, no literals. */
export type JsonValue = string | number | JsonObject;

/** Members in the order of the text. */
export type JsonObject = ReadonlyMap<string, JsonValue>;

/** How deep objects may be nested. */
const depthMax = 4;

/**
 * Reads a JSON object with stricter rules than JSON.parse: no member twice, well-formed Unicode, whole numbers from -(2^53-1) to
 * 2^53-1 in digits alone, no lists and literals. So no two programs read different values from one text. Throws
 * VerificationFailure MALFORMED; `what` names the text in the message.
 */
export function readObject(text: string, what: string): JsonObject {
  let members = 0;

  function read(value: unknown, depth: number): JsonValue {
    if (typeof value === 'string') {
      if (value.isWellFormed()) return value;
      throw malformed(`${what} has half of a surrogate pair`);
    }
    if (typeof value === 'number') {
      if (Number.isSafeInteger(value) && !Object.is(value, -0)) return value;
      throw malformed(`${what} has the number ${value}, which is not a whole one up to 2^53-1`);
    }
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw malformed(`${what} has a value that is not a text, a whole number or an object`);
    return readMembers(value, depth + 1);
  }

  function readMembers(object: object, depth: number): JsonObject {
    if (depth > depthMax) throw malformed(`${what} has objects more than ${depthMax} deep`);
    const entries = Object.entries(object);
    members += entries.length;
    return new Map(entries.map(([name, value]) => [String(read(name, depth)), read(value, depth)]));
  }

  const parsed = parse(text, what);
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    throw malformed(`${what} is not a JSON object`);
  const object = readMembers(parsed, 1);
  const tokens = text.replaceAll(/"(?:[^"\\]+|\\.)*"/g, '""');
  if (/[.eE]/.test(tokens)) throw malformed(`${what} has a number that is not written in digits alone`);
  if (tokens.replaceAll(/[^:]/g, '').length !== members) throw malformed(`${what} has a member twice`);
  return object;
}

function parse(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw malformed(`${what} is not JSON`);
  }
}

/** Writes the canonical form of an object: RFC 8785. */
function canonical(value: JsonValue): string {
  // RFC 8785 takes its rules for numbers and well-formed texts from JSON.stringify.
  if (typeof value !== 'object') return JSON.stringify(value);
  const names = Array.from(value.keys()).sort();
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value.get(name) ?? '')}`).join(',')}}`;
}

/** Reads an object in its canonical form. Throws VerificationFailure MALFORMED for any other form. */
export function readCanonical(text: string, what: string): JsonObject {
  const object = readObject(text, what);
  if (canonical(object) === text) return object;
  throw malformed(
    `${what} is not canonical JSON (RFC 8785): its members are not sorted, or it has spaces or escapes`,
  );
}

/** Reads a list of objects in its canonical form. Throws VerificationFailure MALFORMED for any other form. */
export function readCanonicalList(text: string, what: string): readonly JsonObject[] {
  const parsed = parse(text, what);
  if (!Array.isArray(parsed)) throw malformed(`${what} is not a JSON list`);
  const objects = parsed.map((item) => readObject(JSON.stringify(item), what));
  if (`[${objects.map(canonical).join(',')}]` === text) return objects;
  throw malformed(`${what} is not canonical JSON (RFC 8785)`);
}

/** Reads the members of an object by type. All throw VerificationFailure MALFORMED. */
export type Members = ReturnType<typeof membersOf>;

/** Checks that an object has exactly the required members and some optional ones. Throws VerificationFailure MALFORMED. */
export function membersOf(
  object: JsonObject,
  required: readonly string[],
  what: string,
  optional: readonly string[] = [],
) {
  const missing = required.filter((name) => !object.has(name));
  if (missing.length > 0) throw malformed(`${what} lacks ${missing.join(', ')}`);
  const unknown = Array.from(object.keys()).filter((name) => ![...required, ...optional].includes(name));
  if (unknown.length > 0)
    throw malformed(`${what} has unknown members: ${unknown.map((name) => JSON.stringify(name)).join(', ')}`);
  return {
    text: (name: string): string => {
      const value = object.get(name);
      if (typeof value !== 'string') throw malformed(`${name} of ${what} is not a text`);
      return value;
    },
    /** A whole number from `min`, 0 by default. */
    integer: (name: string, min = 0): number => {
      const value = object.get(name);
      if (typeof value !== 'number' || value < min)
        throw malformed(`${name} of ${what} is not a whole number from ${min}`);
      return value;
    },
    object: (name: string): JsonObject => {
      const value = object.get(name);
      if (typeof value !== 'object') throw malformed(`${name} of ${what} is not an object`);
      return value;
    },
  };
}
