import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';
import { createCalendar } from '../../src/domain/calendar.ts';
import { openRegistry } from '../../src/operations/registry.ts';
import { toFile } from '../store/promises/fixtures.ts';
import { runHere } from '../support/artseal.ts';
import { tester } from '../support/audit-log.ts';
import { runCommand } from '../support/command.ts';
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

const env = { ARTSEAL_DATA_DIR: dataDir };
const events = (...words: string[]) => runHere(['events', ...words], env);

/** The JSON lines that the command prints. */
async function eventsOf(...words: string[]): Promise<Record<string, unknown>[]> {
  const { code, printed, errors } = await events(...words, '--json');
  assert.deepEqual([code, errors], [0, []]);
  return printed.map((line) => JSON.parse(line));
}

const sequencesOf = (told: readonly Record<string, unknown>[]) => told.map(({ sequence }) => sequence);
const numbers = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, place) => from + place);

test('events of all are shown in their order, each with its place and what it is about', async () => {
  const told = await eventsOf();
  assert.deepEqual(
    told.map(({ position }) => position),
    numbers(1, filedMax + 1),
  );
  const [first] = told;
  assert.match(String(first?.id), /^evt_[0-9a-f]{32}$/);
  assert.equal(new Set(told.map(({ id }) => id)).size, told.length);
  assert.deepEqual(first, {
    position: 1,
    platform: 'platform-1',
    sequence: 1,
    id: first?.id,
    type: 'filing.created',
    at: createCalendar('UTC').timestamp(nowMs - 3 * hourMs),
    filingNo: first?.filingNo,
  });
  const [ofLedger, rotated] = told.slice(-2);
  assert.deepEqual([ofLedger?.platform, ofLedger?.sequence], ['ledger', 1]);
  assert.deepEqual(
    [rotated?.type, rotated?.keyId, rotated?.sequence],
    ['key.rotated', platforms[0]?.keyId, filedMax],
  );
  const { stdout } = await runCommand(['events'], env);
  assert.match(
    stdout,
    new RegExp(`^ +1 {2}\\S+ {2}filing\\.created +platform-1 {2}#1 {2}${first?.filingNo}$`, 'm'),
  );
});

test('one caller, a place to begin behind, a time to begin at and a number of events narrow them down', async () => {
  const ofGallery = ['--platform', 'platform-1'] as const;
  assert.deepEqual(sequencesOf(await eventsOf(...ofGallery)), numbers(1, filedMax));
  assert.deepEqual(sequencesOf(await eventsOf(...ofGallery, '--after', '148')), [149, 150, filedMax]);
  assert.deepEqual(sequencesOf(await eventsOf(...ofGallery, '--after', '0', '--limit', '2')), [1, 2]);
  assert.deepEqual(sequencesOf(await eventsOf(...ofGallery, '--since', '2h')), numbers(131, filedMax));
  assert.deepEqual(sequencesOf(await eventsOf('--platform', 'ledger')), [1]);
  const lately = await eventsOf('--since', '2h');
  assert.deepEqual(
    lately.map(({ position }) => position),
    numbers(131, filedMax + 1),
  );
  assert.equal((await eventsOf('--since', '7d')).length, filedMax + 1);
  const soon = new Date(nowMs + hourMs).toISOString();
  assert.deepEqual(await eventsOf('--since', soon), []);
  assert.deepEqual(await eventsOf('--after', String(filedMax + 1)), []);
});

test('what cannot be shown is refused in the words of the command line', async () => {
  const refusals: [words: string[], code: number, message: RegExp][] = [
    [['--platform', 'nobody'], 1, /NOT_FOUND: .*names no platform and no internal system/],
    [['--after', '1000'], 1, /VALIDATION_FAILED: --after must not be above 152/],
    [['--after', '-1'], 2, /needs N after --after/],
    [['--limit', '0'], 2, /events takes --limit as a whole number of 1 or more, not '0'/],
    [['--after', '1', '--since', '1h'], 2, /events takes one of --since, --after/],
    [['--since', 'yesterday'], 2, /takes --since as in 2026-11-21/],
  ];
  for (const [words, code, message] of refusals) {
    const refused = await events(...words);
    assert.equal(refused.code, code);
    assert.match(refused.errors.join('\n'), message);
  }
});
