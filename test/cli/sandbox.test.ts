import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commandsOver, connections, testEveryConnection } from '../support/connections.ts';

for (const connection of connections)
  test(`over ${connection}: the clock of a sandbox is advanced`, async (t) => {
    const artseal = await commandsOver(t, connection);
    const aheadS = async () => {
      const { clock, sandbox } = await artseal.json('clock show');
      return (Date.parse(sandbox) - Date.parse(clock)) / 1_000;
    };
    const [shown, ahead, ...more] = await artseal.lines(['sandbox', 'advance', '90m', '--reason', 'a test']);
    assert.match(shown ?? '', /^sandbox clock {2}\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/);
    assert.deepEqual([ahead, more], ['ahead by       5400 s', []]);
    assert.equal(await aheadS(), 5_400);
    const { sandbox, aheadSeconds } = await artseal.json('sandbox advance 7d');
    assert.equal(aheadSeconds, 610_200);
    assert.ok(Math.abs(Date.parse(sandbox) - Date.now() - 610_200_000) < 60_000, sandbox);
    assert.match((await artseal.lines('clock show'))[1] ?? '', /^sandbox clock {2}\d/);
    assert.equal(await aheadS(), 610_200);
    for (const duration of ['0d', '3651d', '7', '1.5d', '1e3s', '7 d', '99999999d', '٧d'])
      await artseal.errors(2, ['sandbox', 'advance', duration], /takes a DURATION from 1s to 3650d/);
    await artseal.errors(2, 'sandbox advance -7d');
    await artseal.errors(1, 'sandbox advance 3650d', /seconds must be at most 314749800:/);
    assert.equal(await aheadS(), 610_200);
    const [entry, first, ...earlier] = await artseal.list('audit-log');
    assert.deepEqual(
      [entry, first].map(({ action, subject, before, after }) => [action, subject, before, after]),
      [
        ['sandbox advance', 'clock', { aheadS: 5_400 }, { aheadS: 610_200 }],
        ['sandbox advance', 'clock', { aheadS: 0 }, { aheadS: 5_400 }],
      ],
    );
    assert.equal(first.reason, 'a test');
    assert.ok(earlier.every(({ action }) => action !== 'sandbox advance'));
    assert.ok(Math.abs(Date.parse(entry.at) - Date.now()) < 600_000, 'the audit log keeps the real time');
  });

testEveryConnection('sandbox');
