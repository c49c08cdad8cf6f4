import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';
import { createCalendar } from '../../src/domain/calendar.ts';
import { openRegistry } from '../../src/operations/registry.ts';
import { toFile } from '../store/promises/fixtures.ts';
import { tester } from '../support/audit-log.ts';
import { type Connection, commandsOver, connections, testEveryConnection } from '../support/connections.ts';
import { copyFolder } from '../support/copy-folder.ts';
import { fileScope } from '../support/file-scope.ts';
import { issueInto } from '../support/issued.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { tokenTerms } from '../support/tokens.ts';

const hourMs = 3_600_000;

/** How long ago platform-1 filed each of its artworks, in hours; then `ledger`, an internal system, filed one. */
const agesH = [...Array.from({ length: 130 }, () => 3), ...Array.from({ length: 20 }, () => 1)];
const filedMax = agesH.length + 1;

const dataDir = temporaryFolder(fileScope);
const { platforms } = await issueInto(dataDir, 1);
const nowMs = Date.now();
await fileAll();

async function fileAll(): Promise<void> {
  const { store, execute, issuance } = await openRegistry(
    readConfig({ ARTSEAL_DATA_DIR: dataDir }),
    'EXISTING',
  );
  const { stored: ledger } = await issuance.issueToken(tokenTerms('ledger'), tester);
  const gallery = await execute({ kind: 'FindCaller', name: 'platform-1' });
  const calendar = createCalendar('UTC');
  const file = (by: typeof gallery, ageH: number) => {
    const atMs = nowMs - ageH * hourMs;
    return execute(toFile(by, { atMs, timestamp: calendar.timestamp(atMs) }));
  };
  for (const ageH of agesH) await file(gallery, ageH);
  await file(ledger, 0);
  await issuance.rotateKey(platforms[0]?.keyId ?? '', 60, tester);
  await store.close();
}

/** `artseal` over a connection to a copy of the folder. */
async function open(t: TestContext, connection: Connection) {
  const copy = join(temporaryFolder(t), 'data');
  copyFolder(dataDir, copy);
  const artseal = await commandsOver(t, connection, { dataDir: copy });
  return { artseal, eventsOf: (...words: string[]) => artseal.list(['events', ...words]) };
}

const sequencesOf = (list: readonly Record<string, unknown>[]) => list.map(({ sequence }) => sequence);
const numbers = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);

for (const connection of connections) {
  test(`over ${connection}, all events are shown in order, each with its position and subject`, async (t) => {
    const { artseal, eventsOf } = await open(t, connection);
    const all = await eventsOf();
    assert.deepEqual(
      all.map(({ position }) => position),
      numbers(1, filedMax + 1),
    );
    const [first] = all;
    assert.match(String(first?.id), /^evt_[0-9a-f]{32}$/);
    assert.equal(new Set(all.map(({ id }) => id)).size, all.length);
    assert.deepEqual(first, {
      position: 1,
      platform: 'platform-1',
      sequence: 1,
      id: first?.id,
      type: 'filing.created',
      at: createCalendar('UTC').timestamp(nowMs - 3 * hourMs),
      filingNo: first?.filingNo,
    });
    const [ofLedger, rotated] = all.slice(-2);
    assert.deepEqual([ofLedger?.platform, ofLedger?.sequence], ['ledger', 1]);
    assert.deepEqual(
      [rotated?.type, rotated?.keyId, rotated?.sequence],
      ['key.rotated', platforms[0]?.keyId, filedMax],
    );
    assert.match(
      await artseal.text('events'),
      new RegExp(`^ +1 {2}\\S+ {2}filing\\.created +platform-1 {2}#1 {2}${first?.filingNo}$`, 'm'),
    );
  });

  test(`over ${connection}, --platform, --after, --since and --limit select events`, async (t) => {
    const { artseal, eventsOf } = await open(t, connection);
    const ofGallery = ['--platform', 'platform-1'] as const;
    assert.deepEqual(sequencesOf(await eventsOf(...ofGallery)), numbers(1, filedMax));
    assert.deepEqual(sequencesOf(await eventsOf(...ofGallery, '--after', '148')), [149, 150, filedMax]);
    assert.deepEqual(sequencesOf(await eventsOf(...ofGallery, '--after', '0', '--limit', '2')), [1, 2]);
    assert.deepEqual(sequencesOf(await eventsOf(...ofGallery, '--since', '2h')), numbers(131, filedMax));
    assert.equal((await eventsOf('--since', '2h')).length, filedMax - 129);
    await artseal.errors(1, 'events --after 1000', /VALIDATION_FAILED: --after must not be above 152/);
  });
}

testEveryConnection('events');
