import { inspect } from 'node:util';

/** The numbers of the log levels in a line. `silent` is a setting only, and logs nothing. */
export const logLevels = {
  fatal: 60,
  error: 50,
  warn: 40,
  info: 30,
  debug: 20,
  trace: 10,
  silent: Number.POSITIVE_INFINITY,
} as const;

/** The name of a log level. */
export type LogLevel = keyof typeof logLevels;

/** Writes a log line: members, such as `err` for an Error, and the message. */
export interface LogMethod {
  (members: object, message: string): void;
  (message: string): void;
}

/** Writes log lines, each at the level that the method is named after. */
export type Logger = Readonly<Record<Exclude<LogLevel, 'trace' | 'silent'>, LogMethod>>;

/** Where log lines are written, and which. */
export interface LogOptions {
  /** Takes a line: JSON and a line feed. */
  readonly write: (line: string) => void;
  /** The lowest level that is logged; the default is `info`. */
  readonly level?: LogLevel;
  /** The clock, in Unix milliseconds. Without it lines have no time. */
  readonly nowMs?: () => number;
}

/** Creates a logger. Its lines are JSON: level, time, the members in their order without undefined ones, and the message. */
export function createLog({ write, level = 'info', nowMs }: LogOptions): Logger {
  const time = nowMs === undefined ? () => '' : createTimeMember(nowMs);
  function method(name: keyof Logger): LogMethod {
    if (logLevels[name] < logLevels[level]) return () => {};
    const start = `{"level":${logLevels[name]}`;
    return (first: object | string, message?: string) => {
      const hasMembers = typeof first !== 'string';
      const members = hasMembers ? membersText(first) : '';
      write(`${start}${time()}${members},"msg":${JSON.stringify(hasMembers ? message : first)}}\n`);
    };
  }
  return {
    fatal: method('fatal'),
    error: method('error'),
    warn: method('warn'),
    info: method('info'),
    debug: method('debug'),
  };
}

/** A logger that writes nothing. */
export const silentLog: Logger = createLog({ level: 'silent', write: () => {} });

/** Returns the time as a member of a line. Its text is made once a millisecond. */
function createTimeMember(nowMs: () => number): () => string {
  let madeMs: number | undefined;
  let made = '';
  return () => {
    const ms = nowMs();
    if (ms !== madeMs) made = `,"time":"${new Date(ms).toISOString()}"`;
    madeMs = ms;
    return made;
  };
}

/** The members of a line, each after a comma. One call of JSON.stringify is faster than one for each member. */
function membersText(members: object & { readonly err?: unknown }): string {
  const { err } = members;
  const text = jsonOf(err instanceof Error ? { ...members, err: errorMembers(err) } : members);
  return text === '{}' ? '' : `,${text.slice(1, -1)}`;
}

/** The JSON of an object. Members that JSON cannot hold become text: a call must not fail because of its log line. */
function jsonOf(members: object): string {
  try {
    return JSON.stringify(members);
  } catch {
    return JSON.stringify(mapValues(members, serialisable));
  }
}

/** The value, or its text if JSON cannot hold it, such as a bigint or a cycle. */
function serialisable(value: unknown): unknown {
  try {
    JSON.stringify(value);
    return value;
  } catch {
    return inspect(value);
  }
}

/** What is logged of an error: messages and stacks, with those of its causes, and own members such as `code`. */
function errorMembers(error: Error, isNested = false): object {
  const chain = causesOf(error);
  const shown = (value: unknown) => {
    if (!(value instanceof Error)) return serialisable(value);
    // Errors can hold each other.
    return isNested ? String(value) : errorMembers(value, true);
  };
  const { errors } = error as Partial<AggregateError>;
  const first = {
    type: error.constructor.name,
    message: chain.map(({ message }) => message).join(': '),
    stack: chain.map(({ stack }) => stack).join('\ncaused by: '),
    aggregateErrors: Array.isArray(errors) ? errors.map(shown) : undefined,
  };
  const { cause, ...others }: { readonly cause?: unknown } = error;
  const own = cause instanceof Error ? others : error;
  // First in the order of members, and last so that own members do not replace them.
  return { ...first, ...mapValues(own, shown), ...first };
}

/** An error and its causes, each once: a chain of causes can be circular. */
function causesOf(error: Error): Error[] {
  const chain = new Set<Error>();
  for (let next: unknown = error; next instanceof Error && !chain.has(next); next = next.cause)
    chain.add(next);
  return [...chain];
}

function mapValues(object: object, change: (value: unknown) => unknown): object {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]));
}
