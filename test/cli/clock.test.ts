import assert from 'node:assert/strict';
import { test } from 'node:test';
import { artsealWith } from '../support/artseal.ts';
import { fileArtwork } from '../support/calls.ts';
import { createManualClock } from '../support/clock.ts';
import { commandsOver, connections, testEveryConnection } from '../support/connections.ts';
import { startService } from '../support/service.ts';

const instant = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/;

for (const connection of connections)
  test(`over ${connection}: the clock is shown and accepted`, async (t) => {
    const artseal = await commandsOver(t, connection);
    const { accepted } = await artseal.json(['clock', 'accept', '--reason', 'NTP is right']);
    assert.match(accepted, instant);
    const [wall, newest, verdict] = await artseal.lines('clock show');
    assert.match(wall ?? '', /^wall clock {5}\d/);
    assert.equal(newest, `newest record  ${accepted}`);
    assert.equal(verdict, 'filings        are accepted');
    assert.deepEqual(Object.keys(await artseal.json('clock show')), ['clock', 'newest']);
    const [entry] = await artseal.list('audit-log');
    assert.deepEqual([entry.action, entry.reason], ['clock accept', 'NTP is right']);
  });

test('a running server says what is wrong with its clock, and files when the command has accepted it', async (t) => {
  const startMs = Date.now();
  const clock = createManualClock(startMs);
  const service = await startService(t, { clock });
  const platform = await service.platform();
  const stamped = () => ({ timestamp: String(Math.floor(clock.nowMs() / 1_000)) });
  const file = () => fileArtwork(service, platform, stamped());
  const artseal = artsealWith({ ARTSEAL_DATA_DIR: service.dataDir });
  assert.equal((await file()).status, 200);
  for (const [setToMs, fault] of [
    [startMs - 3_600_000, /the clock is 3\d{3} s behind the newest record/],
    // Forty days ahead: only the server knows that the clock was set.
    [startMs + 40 * 86_400_000, /the clock was set forward by \d+ s \(40 days\) since the service started/],
  ] as const) {
    clock.setWall(setToMs);
    const [wall, newest, verdict] = await artseal.lines('clock show');
    assert.match(wall ?? '', instant);
    assert.match(newest ?? '', instant);
    assert.match(
      verdict ?? '',
      new RegExp(
        `^filings {8}are rejected: ${fault.source}.*; if the clock is right, run artseal clock accept$`,
      ),
    );
    assert.match((await artseal.json('clock show')).fault, fault);
    assert.equal((await file()).json.code, 'UNAVAILABLE');
    assert.match(await artseal.text('clock accept'), /^accepted .*\nnewest record/);
    assert.equal((await file()).status, 200);
  }
});

testEveryConnection('clock');
