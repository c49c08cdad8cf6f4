import assert from 'node:assert/strict';
import { test } from 'node:test';
import pino from 'pino';
import { textOfLine } from '../../src/telemetry/log-text.ts';

/** The text of a log line. */
function textOf(write: (log: pino.Logger) => void): string {
  let line = '';
  write(
    pino(
      { base: null, timestamp: () => ',"time":"2026-11-21T12:00:00.000Z"' },
      { write: (json) => (line = json) },
    ),
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
