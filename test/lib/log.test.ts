import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLog, type Logger, type LogLevel, silentLog } from '../../src/lib/log.ts';

/** The lines that are logged at a level. */
function linesOf(work: (log: Logger) => void, level?: LogLevel): string[] {
  const lines: string[] = [];
  work(createLog({ write: (line) => lines.push(line), ...(level && { level }) }));
  return lines;
}

/** The members of the only line. */
function membersOf(members: object) {
  const [line = '', ...more] = linesOf((log) => log.error(members, 'failed'));
  assert.deepEqual(more, []);
  assert.match(line, /^\{"level":50,.*"msg":"failed"\}\n$/);
  return JSON.parse(line);
}

test('a line is level, time, the members in their order, and the message', () => {
  const times = [0, 0, 1, 1_795_176_000_000].values();
  const lines: string[] = [];
  const log = createLog({ write: (line) => lines.push(line), nowMs: () => times.next().value ?? Number.NaN });
  log.info(
    { status: 200, caller: 'a "quoted"\nname', left: undefined, none: null, more: { a: [1] } },
    'call',
  );
  log.warn({}, '50% "done"\n');
  log.info({ left: undefined }, 'nothing');
  log.fatal('the end');
  assert.deepEqual(lines, [
    '{"level":30,"time":"1970-01-01T00:00:00.000Z","status":200,"caller":"a \\"quoted\\"\\nname","none":null,"more":{"a":[1]},"msg":"call"}\n',
    '{"level":40,"time":"1970-01-01T00:00:00.000Z","msg":"50% \\"done\\"\\n"}\n',
    '{"level":30,"time":"1970-01-01T00:00:00.001Z","msg":"nothing"}\n',
    '{"level":60,"time":"2026-11-20T12:00:00.000Z","msg":"the end"}\n',
  ]);
});

/** Logs a line at each level. */
function logAll(log: Logger): void {
  for (const level of ['debug', 'info', 'warn', 'error', 'fatal'] as const) log[level]('');
}

test('lines below the level are not written; the default is info', () => {
  const levels = (level?: LogLevel) => linesOf(logAll, level).map((line) => JSON.parse(line).level);
  assert.deepEqual(levels('trace'), [20, 30, 40, 50, 60]);
  assert.deepEqual(levels('debug'), [20, 30, 40, 50, 60]);
  assert.deepEqual(levels(), [30, 40, 50, 60]);
  assert.deepEqual(levels('error'), [50, 60]);
  assert.deepEqual(levels('silent'), []);
});

test('a silent log does not look at the members', () => {
  silentLog.fatal(
    {
      get err() {
        return assert.fail();
      },
    },
    'x',
  );
});

test('an error is logged with its causes and its own members', () => {
  const cause = new RangeError('too far');
  const err = Object.assign(new TypeError('no such thing', { cause }), {
    code: 'E1',
    type: 'mine',
    detail: { a: 1 },
  });
  const logged = membersOf({ err }).err;
  assert.deepEqual(Object.keys(logged), ['type', 'message', 'stack', 'code', 'detail']);
  assert.deepEqual(logged, {
    type: 'TypeError',
    message: 'no such thing: too far',
    stack: `${err.stack}\ncaused by: ${cause.stack}`,
    code: 'E1',
    detail: { a: 1 },
  });
  assert.equal(membersOf({ err: 'a text' }).err, 'a text');
  assert.ok(!('err' in membersOf({ err: undefined })));
});

test('the errors inside an error are logged', () => {
  const refused = Object.assign(new Error('connect ECONNREFUSED ::1:5432'), { code: 'ECONNREFUSED' });
  const err = Object.assign(new AggregateError([refused, 'x']), { response: new Error('inner') });
  const { aggregateErrors, response } = membersOf({ err }).err;
  const { message, stack } = refused;
  assert.deepEqual(aggregateErrors, [{ type: 'Error', message, stack, code: 'ECONNREFUSED' }, 'x']);
  assert.equal(response.message, 'inner');
});

test('errors in a circle are logged', () => {
  const first = new Error('first');
  first.cause = new Error('second', { cause: first });
  Object.assign(first, { self: first });
  const { err } = membersOf({ err: first });
  assert.equal(err.message, 'first: second');
  assert.deepEqual([err.self.self, err.cause], ['Error: first', undefined]);
});

test('members that JSON cannot hold are logged as text, and the others as ever', () => {
  const circular: Record<string, unknown> = { name: 'ring' };
  circular.self = circular;
  const odd = { toJSON: () => assert.fail('no JSON') };
  const err = Object.assign(new Error('bad'), { code: 7, socket: circular, size: 5n });
  const members = membersOf({ circular, big: 12n, many: [1n], odd, status: 500, list: [1], err });
  assert.match(members.circular, /name: 'ring'.*\[Circular/);
  assert.deepEqual([members.big, members.many, members.status, members.list], ['12n', '[ 1n ]', 500, [1]]);
  assert.equal(typeof members.odd, 'string');
  assert.deepEqual([members.err.message, members.err.code, members.err.size], ['bad', 7, '5n']);
  assert.match(members.err.socket, /\[Circular/);
});
