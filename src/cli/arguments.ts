import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import { UsageError } from './command.ts';

/** The words of a command: those that stand for themselves, and the values of its flags. */
export interface Words {
  readonly positionals: readonly string[];
  /** The text of a flag. */
  text(flag: string): string | undefined;
  /** The text of a flag that must be there. */
  required(flag: string): string;
  /** Whether a flag without a value is set. */
  has(flag: string): boolean;
}

/** Reads the words behind a command. Throws UsageError for unknown flags and too many or too few words. */
export function readWords(
  words: string[],
  positionals: number | readonly number[],
  options: ParseArgsOptionsConfig,
): Words {
  const parsed = parse(words, options);
  const allowed = typeof positionals === 'number' ? [positionals] : positionals;
  if (!allowed.includes(parsed.positionals.length)) {
    throw new UsageError(`takes ${allowed.join(' or ')} words, not ${parsed.positionals.length}`);
  }
  const text = (flag: string): string | undefined => {
    const value = parsed.values[flag];
    return typeof value === 'string' ? value : undefined;
  };
  return {
    positionals: parsed.positionals,
    text,
    required: (flag) => {
      const value = text(flag);
      if (value === undefined || value === '') throw new UsageError(`needs --${flag}`);
      return value;
    },
    has: (flag) => parsed.values[flag] === true,
  };
}

/** A request target as it is signed and sent. Throws UsageError. */
export function readTarget(word = ''): string {
  if (!word.startsWith('/') || word.startsWith('//')) {
    throw new UsageError(`needs a TARGET that begins with one /, such as /api/v1/filing, not '${word}'`);
  }
  return word;
}

function parse(args: string[], options: ParseArgsOptionsConfig) {
  try {
    return parseArgs({ args, options, allowPositionals: true, strict: true });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new UsageError(message.replaceAll(/\s+/g, ' '));
  }
}
