import { readFileSync } from 'node:fs';
import type { Environment } from '../domain/caller.ts';
import { errorText } from '../lib/file-errors.ts';
import { type Setting, SettingError } from '../payments/provider.ts';

/** The settings cannot be used; each fault is a sentence that names a variable and what it must be. */
export class ConfigError extends Error {
  override name = 'ConfigError';
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join('\n'));
    this.faults = faults;
  }
}

/** Returns the text of a setting, or its default; not checked. */
export function textOf(env: NodeJS.ProcessEnv, { variable, fallback }: Setting): string {
  return env[variable] || fallback;
}

/** The settings of one environment. */
export type Source = ReturnType<typeof readFrom>;

/** Reads settings from `env`. Some depend on the environment, sandbox or production. */
export function readFrom(env: NodeJS.ProcessEnv, environment: () => Environment) {
  const isSet = (setting: Setting) => textOf(env, setting) !== '';
  /** Returns the value or the default. Throws ConfigError. */
  const read = <Value>(setting: Setting<Value>): Value =>
    readSetting(setting, textOf(env, setting), environment);
  /** Returns undefined if the setting is unset and has no default. Throws ConfigError. */
  const find = <Value>(setting: Setting<Value>) => (isSet(setting) ? read(setting) : undefined);
  return { isSet, read, find };
}

function readSetting<Value>(setting: Setting<Value>, text: string, environment: () => Environment): Value {
  try {
    return setting.read(setting.namesFile ? readFileSync(text, 'utf8') : text, environment);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    if (!(error instanceof SettingError)) return refuse(setting, `cannot be used: ${errorText(error)}`);
    return refuse(setting, setting.secret ? error.message : `${error.message}, not ${JSON.stringify(text)}`);
  }
}

/** Returns a reader that takes one of `allowed`, by its name. */
export function oneOf<Value>(
  allowed: readonly Value[],
  nameOf: (value: Value) => string = String,
): (text: string) => Value {
  return (text) => {
    const found = allowed.find((value) => nameOf(value) === text);
    if (found === undefined) throw new SettingError(`must be ${allowed.map(nameOf).join(' or ')}`);
    return found;
  };
}

/** Throws ConfigError for the rule that a setting breaks. */
export function refuse(setting: Setting, rule: string): never {
  throw new ConfigError([faultOf(setting, rule)]);
}

/** Returns the sentence for a setting that breaks a rule; the rule is worded as in SettingError. */
export function faultOf({ variable }: Setting, rule: string): string {
  return `${variable} ${rule}.`;
}

/**
 * Reads all members. `faultsBesides` returns further faults of those that could be read. Throws ConfigError with every
 * fault, each once.
 */
export function readAll<T extends object>(
  readers: { readonly [Member in keyof T]: () => T[Member] },
  faultsBesides: (read: Partial<T>) => readonly string[] = () => [],
): T {
  const read: Partial<T> = {};
  const faults: string[] = [];
  for (const member of Object.keys(readers) as (keyof T)[]) {
    try {
      read[member] = readers[member]();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      faults.push(...error.faults);
    }
  }
  faults.push(...faultsBesides(read));
  if (faults.length > 0) throw new ConfigError([...new Set(faults)]);
  return read as T;
}
