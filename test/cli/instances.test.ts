import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildInfo } from '../../src/packaging/build-info.ts';
import { commandsOver, connections, testEveryConnection } from '../support/connections.ts';

for (const connection of connections)
  test(`over ${connection}: the instance that serves is shown`, async (t) => {
    const artseal = await commandsOver(t, connection);
    if (connection === 'a stopped folder') {
      assert.deepEqual([await artseal.lines('instances'), await artseal.list('instances')], [[], []]);
      return;
    }
    const { host, since, ...shown } = await artseal.json('instances');
    assert.deepEqual(shown, {
      ...{ processId: process.pid, version: buildInfo.version },
      ...{ seenSecondsAgo: 0, isGone: false, isLeading: true, isThis: true },
    });
    const line = `${host}  process ${process.pid}  ${buildInfo.version}  since ${since}  leads  (this one)`;
    assert.equal(await artseal.text('instances'), line);
  });

testEveryConnection('instances');
