import { parseArgs } from 'node:util';
import { UsageError, type Words } from './command.ts';

/** A word or a flag of a usage line. */
interface Part {
  readonly name: string;
  readonly isFlag: boolean;
  /** What the value of a flag is called; undefined for a flag without one. */
  readonly value: string | undefined;
  /** Whether it may be given more than once. */
  readonly isRepeatable: boolean;
  readonly isRequired: boolean;
}

/** `[` if it may be left out, then `--flag`, `--flag VALUE`, `--flag VALUE...` if that may be repeated, or `WORD`. */
const partPattern = /(\[?)(?:--([a-z-]+)(?: ([A-Z][^\s\].]*)(\.\.\.)?)?|([A-Z][A-Z_]*))/g;

/** Of flags whose use does not show why they are required. */
const whyRequired: Readonly<Record<string, string>> = {
  reason: ' (money is decided here, so the log of acts keeps why)',
};

/**
 * Reads what stands behind the name of an action by its usage line, such as
 * `key rotate KEY_ID [--overlap SECONDS] [--json]`. Throws UsageError that names all that is missing or too much.
 */
export function readWords(usage: string, args: string[]): Words {
  const parts = partsOf(usage);
  const { given, faults } = match(parts, args);
  for (const part of parts) {
    const isMissing = part.isFlag ? !given.has(part.name) : !given.get(part.name)?.[0];
    if (part.isRequired && isMissing) faults.push(`needs ${shown(part)}${whyRequired[part.name] ?? ''}`);
  }
  if (faults.length > 0) throw new UsageError(faults.join(' and '));
  return {
    required: (name) => {
      const value = given.get(name)?.[0];
      if (value === undefined) throw new Error(`'${usage}' does not require ${name}.`);
      return value;
    },
    text: (name) => given.get(name)?.[0],
    texts: (name) => given.get(name) ?? [],
    has: (flag) => given.has(flag),
  };
}

/** Gives each argument to its part; what fits none is a fault. */
function match(parts: readonly Part[], args: string[]): { given: Map<string, string[]>; faults: string[] } {
  const flags = new Map(parts.filter(({ isFlag }) => isFlag).map((part) => [part.name, part]));
  const free = parts.filter(({ isFlag }) => !isFlag);
  const given = new Map<string, string[]>();
  const faults: string[] = [];
  const surplus: string[] = [];
  for (const token of tokensOf(args, flags)) {
    if (token.kind === 'option') {
      const fault = faultOf(token, flags.get(token.name), given.has(token.name));
      if (fault !== undefined) faults.push(fault);
      given.set(token.name, [...(given.get(token.name) ?? []), token.value ?? '']);
    } else if (token.kind === 'positional') {
      const part = free.shift();
      if (part === undefined) surplus.push(`'${token.value}'`);
      else given.set(part.name, [token.value]);
    }
  }
  if (surplus.length > 0) faults.push(`takes no ${surplus.join(', ')} (a value with spaces needs quotes)`);
  return { given, faults };
}

/** One of the words that a flag may have; undefined without the flag. Throws UsageError. */
export function oneOf<Word extends string>(
  words: Words,
  flag: string,
  known: readonly Word[],
): Word | undefined {
  const text = words.text(flag);
  const word = known.find((each) => each === text);
  if (text !== undefined && word === undefined)
    throw new UsageError(`takes --${flag} ${known.join('|')}, not '${text}'`);
  return word;
}

/** A request target as it is signed and sent. Throws UsageError. */
export function readTarget(word: string): string {
  if (!word.startsWith('/') || word.startsWith('//')) {
    throw new UsageError(`needs a TARGET that begins with one /, such as /api/v1/filing, not '${word}'`);
  }
  const { pathname, search } = new URL(`http://service${word}`);
  // What clients rewrite as they send it would be signed otherwise than it is sent.
  if (pathname + search !== word) {
    throw new UsageError(`needs the TARGET as it is sent, which is ${pathname}${search}, not '${word}'`);
  }
  return word;
}

function partsOf(usage: string): Part[] {
  return [...usage.matchAll(partPattern)].map(([, bracket, flag, value, dots, word = '']) => ({
    name: flag ?? word,
    isFlag: flag !== undefined,
    value,
    isRepeatable: dots !== undefined,
    // A flag without a value is a choice: whether one has to be made, its action knows.
    isRequired: bracket === '' && (flag === undefined || value !== undefined),
  }));
}

/** Not strict: what is wrong is told here, all at once and in the words of the usage line. */
function tokensOf(args: string[], flags: ReadonlyMap<string, Part>) {
  const options = Object.fromEntries(
    [...flags].map(([name, { value }]) => [
      name,
      { type: value === undefined ? ('boolean' as const) : ('string' as const) },
    ]),
  );
  return parseArgs({ args, options, allowPositionals: true, strict: false, tokens: true }).tokens;
}

interface OptionToken {
  readonly rawName: string;
  readonly value: string | undefined;
  readonly inlineValue: boolean | undefined;
}

function faultOf(
  { rawName, value, inlineValue }: OptionToken,
  flag: Part | undefined,
  isRepeated: boolean,
): string | undefined {
  if (flag === undefined) return `takes no ${rawName}`;
  if (isRepeated && !flag.isRepeatable) return `takes ${rawName} once`;
  if (flag.value === undefined) return value === undefined ? undefined : `takes ${rawName} without a value`;
  // The next flag, taken for the value of this one.
  const isFlagLike = inlineValue !== true && value !== undefined && /^-./.test(value);
  return value === undefined || value === '' || isFlagLike
    ? `needs ${flag.value} after ${rawName}`
    : undefined;
}

/** A part as a sentence says it: `a KEY_ID`, `--name NAME`. */
function shown({ name, isFlag, value }: Part): string {
  if (isFlag) return `--${name} ${value}`;
  return `${/^[AEIOU]/.test(name) ? 'an' : 'a'} ${name}`;
}
