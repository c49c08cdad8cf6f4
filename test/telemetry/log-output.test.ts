import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { createLog, type Logger } from '../../src/lib/log.ts';
import { createLogOutput, textOfLine } from '../../src/telemetry/log-output.ts';

/** A stream whose reader continues when the test calls `goOn`. */
function heldStream() {
  const received: string[] = [];
  let goOn = () => {};
  const stream = new Writable({
    decodeStrings: false,
    write: (chunk: string, _encoding, taken) => {
      received.push(chunk);
      goOn = taken;
    },
  });
  return { stream, received, goOn: () => goOn() };
}

const line = `${'x'.repeat(199)}\n`;

test('lines are gathered and written in order', () => {
  const { stream, received, goOn } = heldStream();
  const output = createLogOutput(stream);
  output.write('a\n');
  output.write('b\n');
  assert.deepEqual(received, []);
  output.flush();
  goOn();
  output.write('c\n');
  output.flush();
  output.flush();
  assert.deepEqual(received, ['a\nb\n', 'c\n']);
});

test('lines that wait for the reader are bounded', () => {
  const { stream } = heldStream();
  const output = createLogOutput(stream);
  const lines = 20_000;
  for (let written = 0; written < lines; written += 1) output.write(line);
  assert.ok(stream.writableLength <= 1_100_000, `${stream.writableLength} characters wait`);
  assert.equal(output.takeDropped(), 0, 'there is no room to log it yet');
});

test('with room again the dropped lines are reported once, and new lines are written', () => {
  const { stream, received, goOn } = heldStream();
  const output = createLogOutput(stream);
  const lines = 20_000;
  for (let written = 0; written < lines; written += 1) output.write(line);
  output.flush();
  while (stream.writableLength > 0) goOn();
  const kept = received.join('').length / line.length;
  assert.equal(output.takeDropped(), lines - kept);
  assert.equal(output.takeDropped(), 0);
  output.write('new\n');
  output.flush();
  assert.equal(received.at(-1), 'new\n');
});

test('a stream error is ignored', async () => {
  const stream = new Writable({ write: (_chunk, _encoding, taken) => taken(new Error('EPIPE')) });
  const output = createLogOutput(stream);
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  stream.once('close', resolve);
  output.write(line);
  output.flush();
  await closed;
  assert.equal(stream.errored?.message, 'EPIPE');
  output.write(line);
  output.flush();
});

/** The text of a log line. */
function textOf(write: (log: Logger) => void): string {
  let line = '';
  write(
    createLog({
      write: (json) => (line = json),
      nowMs: () => Date.UTC(2026, 10, 21, 12),
    }),
  );
  return textOfLine(line);
}

test('a line is time, level, message, and the other members by their names', () => {
  assert.equal(
    textOf((log) =>
      log.warn({ status: 200, path: '/api/v1/filing', caller: 'Gallery One', left: null }, 'call'),
    ),
    '2026-11-21T12:00:00.000Z WARN  call status=200 path=/api/v1/filing caller="Gallery One" left=null\n',
  );
  assert.equal(
    textOf((log) => log.info('ready')),
    '2026-11-21T12:00:00.000Z INFO  ready\n',
  );
});

test('an error is its message, and its stack below', () => {
  const [first, second] = textOf((log) => log.error({ err: new Error('the disk is full') }, 'failed')).split(
    '\n',
  );
  assert.equal(first, '2026-11-21T12:00:00.000Z ERROR failed err="the disk is full"');
  assert.equal(second, '    Error: the disk is full');
});
