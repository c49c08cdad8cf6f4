import { ApiError } from '../domain/reason.ts';

/** A JSON number with its text, so that no digit is lost. */
export class JsonNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** A JSON object; members in the order written. */
export type JsonObject = ReadonlyMap<string, JsonValue>;

/** A JSON value. */
export type JsonValue = string | JsonNumber | boolean | null | readonly JsonValue[] | JsonObject;

/** INVALID_JSON, with the place of the fault. */
export class JsonError extends ApiError {
  /** The fault, to follow the name of the text and a colon: "the member price is repeated". */
  readonly what: string;
  /** Offset in UTF-16 units; undefined for the whole text. */
  readonly at: number | undefined;

  constructor(what: string, at?: number) {
    super('INVALID_JSON', `The body is refused: ${what}.`);
    this.what = what;
    this.at = at;
  }
}

/** How deep arrays and objects may nest. */
export const jsonDepthMax = 16;

/** How many characters of a member's name a message shows. */
const nameShownMax = 64;

const invalid = (what: string, at?: number) => new JsonError(what, at);

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
// biome-ignore lint/suspicious/noControlCharactersInRegex: RFC 8259 forbids just these in a string.
const stringToken = /"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"/y;
const numberToken = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const wordToken = /true|false|null/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: see stringToken.
const notPlain = /[\\\x00-\x1f]/;
const codes = { space: 0x20, tab: 0x09, lineFeed: 0x0a, carriageReturn: 0x0d } as const;

/**
 * Parses one JSON object (RFC 8259, UTF-8 without BOM). Throws INVALID_JSON also for a repeated member and for bytes that are not
 * UTF-8, which JSON.parse would accept.
 */
export function parseJsonObject(bytes: Uint8Array): JsonObject {
  const text = decodeUtf8(bytes);
  if (text.startsWith('\ufeff')) throw invalid('it begins with a byte order mark');
  const value = new Reader(text).document();
  if (!(value instanceof Map)) throw invalid('it must be one JSON object');
  return value;
}

/** The JSON text of a value; numbers keep their digits. */
export function jsonText(value: JsonValue): string {
  if (value instanceof JsonNumber) return value.text;
  if (Array.isArray(value)) return `[${value.map(jsonText).join(',')}]`;
  if (!(value instanceof Map)) return JSON.stringify(value);
  return `{${Array.from(value, ([name, member]) => `${JSON.stringify(name)}:${jsonText(member)}`).join(',')}}`;
}

/** A member's name for a message: clipped, and without characters that could disturb a terminal or a log. */
export function shownName(name: string): string {
  const clipped = name.length > nameShownMax ? `${name.slice(0, nameShownMax)}…` : name;
  return clipped.toWellFormed().replaceAll(/\p{C}/gu, '\ufffd');
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw invalid('it is not UTF-8');
  }
}

const isWhiteSpace = (code: number): boolean =>
  code === codes.space || code === codes.lineFeed || code === codes.carriageReturn || code === codes.tab;

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): JsonValue {
    const value = this.#value(0);
    if (this.#next() !== undefined) throw this.#unexpected();
    return value;
  }

  #value(depth: number): JsonValue {
    const first = this.#next();
    if (first === '{' || first === '[') {
      if (depth >= jsonDepthMax) throw invalid(`it nests deeper than ${jsonDepthMax} levels`, this.#at);
      this.#at += 1;
      return first === '{' ? this.#object(depth + 1) : this.#array(depth + 1);
    }
    if (first === '"') return this.#string();
    const word = this.#token(wordToken);
    if (word !== undefined) return word === 'null' ? null : word === 'true';
    const number = this.#token(numberToken);
    if (number === undefined) throw this.#unexpected();
    return new JsonNumber(number);
  }

  #object(depth: number): JsonObject {
    const members = new Map<string, JsonValue>();
    if (this.#skip('}')) return members;
    do {
      if (this.#next() !== '"') throw this.#unexpected();
      const begin = this.#at;
      const name = this.#string();
      if (!this.#skip(':')) throw this.#unexpected();
      const { size } = members;
      members.set(name, this.#value(depth));
      if (members.size === size) throw invalid(`the member ${shownName(name)} is repeated`, begin);
    } while (this.#skip(','));
    if (!this.#skip('}')) throw this.#unexpected();
    return members;
  }

  #array(depth: number): JsonValue[] {
    const items: JsonValue[] = [];
    if (this.#skip(']')) return items;
    do items.push(this.#value(depth));
    while (this.#skip(','));
    if (!this.#skip(']')) throw this.#unexpected();
    return items;
  }

  #string(): string {
    const begin = this.#at + 1;
    const end = this.#text.indexOf('"', begin);
    const plain = this.#text.slice(begin, Math.max(begin, end));
    // Most strings have no escape, and finding their end takes less than matching them.
    if (end >= 0 && !notPlain.test(plain)) {
      this.#at = end + 1;
      return plain;
    }
    const token = this.#token(stringToken);
    if (token === undefined)
      throw invalid(`the string at position ${this.#at} is not a JSON string`, this.#at);
    return JSON.parse(token);
  }

  /** The next character that is not white space; undefined at the end. */
  #next(): string | undefined {
    const text = this.#text;
    let at = this.#at;
    for (;;) {
      const code = text.charCodeAt(at);
      if (code > codes.space || !isWhiteSpace(code)) break;
      at += 1;
    }
    this.#at = at;
    return text[at];
  }

  #skip(character: string): boolean {
    if (this.#next() !== character) return false;
    this.#at += 1;
    return true;
  }

  #token(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    if (!pattern.test(this.#text)) return undefined;
    const token = this.#text.slice(this.#at, pattern.lastIndex);
    this.#at = pattern.lastIndex;
    return token;
  }

  #unexpected(): JsonError {
    const at = this.#at;
    return invalid(
      at < this.#text.length ? `the JSON is broken at position ${at}` : 'the JSON ends too early',
      at,
    );
  }
}

const decimal = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;

/**
 * The integer that a decimal text denotes exactly: 1e3 and 1000.0 are integers. Undefined if it denotes none. A number with more
 * digits than `max` becomes ±(max + 1), so that 1e999999999 costs no memory.
 */
export function integerOf(text: string, max: bigint): bigint | undefined {
  const [, sign, whole = '', fraction = '', exponent = '0'] = decimal.exec(text) ?? [];
  if (sign === undefined) return undefined;
  const digits = `${whole}${fraction}`.replace(/^0+/, '');
  if (digits === '') return 0n;
  const significant = digits.slice(0, lengthWithoutZeros(digits));
  const zeros = Number(exponent) - fraction.length + digits.length - significant.length;
  if (zeros < 0) return undefined;
  const tooLong = significant.length + zeros > String(max).length;
  const magnitude = tooLong ? max + 1n : BigInt(significant) * 10n ** BigInt(zeros);
  return sign === '-' ? -magnitude : magnitude;
}

/** The length of a text without trailing zeros. A pattern would take quadratic time. */
function lengthWithoutZeros(digits: string): number {
  let length = digits.length;
  while (digits[length - 1] === '0') length -= 1;
  return length;
}

/** The rules for JSON of the wrong type, over both APIs. Each completes a sentence that begins with the field. */
export const typeRules = {
  string: 'must be a string',
  boolean: 'must be true or false',
  array: 'must be an array',
  object: 'must be an object',
  integer: 'must be a whole number',
} as const;

/** The rule for the names of an enum; the value 0 has none. */
export function wordRule(values: readonly { readonly name: string; readonly number: number }[]): string {
  const words = values.filter(({ number }) => number !== 0).map(({ name }) => name);
  return `must be ${words.join(' or ')}`;
}
