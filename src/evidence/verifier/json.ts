import { malformed } from './failure.ts';

/** What texts of the evidence log are made of: nothing else is a value there, neither a list nor a fraction. */
export type JsonValue = string | number | JsonObject;

/** Members in the order of the text. */
export type JsonObject = ReadonlyMap<string, JsonValue>;

/** How deep objects may lie in each other. */
const depthMax = 4;

const whiteSpace = /[ \t\n\r]*/y;
const stringToken = /"(?:[^"\\\p{Cc}]|[\u007f-\u009f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/uy;
const numberToken = /-?[0-9][0-9.eE+-]*/y;
const wholeNumber = /^(0|-?[1-9][0-9]*)$/;

/**
 * Reads the JSON text of an object strictly: no member twice, texts that are well-formed Unicode, whole numbers from
 * -(2^53-1) to 2^53-1 written as digits alone, objects. Throws VerificationFailure MALFORMED that names the text by `what`.
 */
export function readObject(text: string, what: string): JsonObject {
  let at = 0;

  function take(token: RegExp): string | undefined {
    token.lastIndex = at;
    const found = token.exec(text)?.[0];
    at += found?.length ?? 0;
    return found;
  }

  function takeSign(sign: string): boolean {
    take(whiteSpace);
    if (text[at] !== sign) return false;
    at += 1;
    return true;
  }

  const broken = (expected: string) => malformed(`${what} is not JSON as expected: ${expected} at ${at}`);

  function readString(): string {
    const token = take(stringToken);
    if (token === undefined) throw broken('no text');
    const value = JSON.parse(token) as string;
    if (!value.isWellFormed()) throw malformed(`${what} has half of a surrogate pair before ${at}`);
    return value;
  }

  function readNumber(): number {
    const token = take(numberToken);
    if (token === undefined) throw broken('neither a text nor a whole number nor an object');
    const value = Number(token);
    if (!wholeNumber.test(token) || !Number.isSafeInteger(value)) {
      throw malformed(`${what} has the number ${token.slice(0, 32)}, which is not a whole one up to 2^53-1`);
    }
    return value;
  }

  function readMembers(depth: number): JsonObject {
    if (!takeSign('{')) throw broken('no {');
    if (depth > depthMax) throw malformed(`${what} has objects more than ${depthMax} deep`);
    const members = new Map<string, JsonValue>();
    if (takeSign('}')) return members;
    do {
      take(whiteSpace);
      const name = readString();
      if (members.has(name)) throw malformed(`${what} has the member ${JSON.stringify(name)} twice`);
      if (!takeSign(':')) throw broken('no :');
      members.set(name, readValue(depth));
    } while (takeSign(','));
    if (!takeSign('}')) throw broken('neither , nor }');
    return members;
  }

  function readValue(depth: number): JsonValue {
    take(whiteSpace);
    if (text[at] === '{') return readMembers(depth + 1);
    return text[at] === '"' ? readString() : readNumber();
  }

  const object = readMembers(1);
  take(whiteSpace);
  if (at < text.length) throw broken('something behind its end');
  return object;
}

/** The canonical form of an object, RFC 8785: members sorted by their UTF-16 units, no white space, one way to write each text. */
export function canonical(value: JsonValue): string {
  if (typeof value === 'number') return String(value);
  // For well-formed texts JSON.stringify is what the RFC takes its rules from.
  if (typeof value === 'string') return JSON.stringify(value);
  const names = Array.from(value.keys()).sort();
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value.get(name) ?? '')}`).join(',')}}`;
}

/** Reads an object from its canonical form, and from no other. */
export function readCanonical(text: string, what: string): JsonObject {
  const object = readObject(text, what);
  if (canonical(object) !== text) {
    throw malformed(
      `${what} is not canonical JSON: its members are not sorted, or it is written otherwise than in RFC 8785`,
    );
  }
  return object;
}

/** Reads the members of an object that has these and no others. */
export interface Members {
  text(name: string): string;
  /** A whole number from `min`, which is 0 if it is left out. */
  integer(name: string, min?: number): number;
  object(name: string): JsonObject;
}

/** The members of an object, which are these, `optional` ones besides, and no others. */
export function membersOf(
  object: JsonObject,
  required: readonly string[],
  what: string,
  optional: readonly string[] = [],
): Members {
  const missing = required.filter((name) => !object.has(name));
  if (missing.length > 0) throw malformed(`${what} lacks ${missing.join(', ')}`);
  const unknown = Array.from(object.keys()).filter((name) => ![...required, ...optional].includes(name));
  if (unknown.length > 0) {
    throw malformed(
      `${what} has ${unknown.map((name) => JSON.stringify(name)).join(', ')}, which is no member of it`,
    );
  }
  return {
    text: (name) => {
      const value = object.get(name);
      if (typeof value !== 'string') throw malformed(`${name} of ${what} is not a text`);
      return value;
    },
    integer: (name, min = 0) => {
      const value = object.get(name);
      if (typeof value !== 'number' || value < min) {
        throw malformed(`${name} of ${what} is not a whole number from ${min}`);
      }
      return value;
    },
    object: (name) => {
      const value = object.get(name);
      if (typeof value !== 'object') throw malformed(`${name} of ${what} is not an object`);
      return value;
    },
  };
}
