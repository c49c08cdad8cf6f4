import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import type { Report } from '../../bench/report.ts';
import { publicYardsticks } from '../../bench/yardstick-servers.ts';
import { skipUnlessPostgres } from '../support/postgres.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const root = join(import.meta.dirname, '..', '..');

/** Runs the bench; `left` are the temporary files that it did not remove. */
async function bench(t: TestContext, ...words: string[]) {
  const folder = temporaryFolder(t);
  // PostgreSQL runs as another user than root.
  chmodSync(folder, 0o755);
  const { NODE_TEST_CONTEXT, ...inherited } = process.env;
  const env = { ...inherited, TMPDIR: folder };
  const child = spawn(process.execPath, ['bench/run.ts', ...words], { cwd: root, env });
  t.after(() => child.kill());
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  return { code, stdout, stderr, left: readdirSync(folder) };
}

test('a smoke run measures each call at each server, including another checkout', async (t) => {
  const json = join(temporaryFolder(t), 'figures.json');
  const words = ['--smoke', '--connections', '1,64', '--old', root, '--json', json];
  const { code, stdout, stderr, left } = await bench(t, ...words);
  assert.deepEqual({ code, stderr, left }, { code: 0, stderr: '', left: [] });
  for (const connections of [1, 64]) {
    const shown = (call: string) => {
      const start = stdout.indexOf(`${call}; connections: ${connections},`);
      assert.ok(start >= 0, `${call} over ${connections} connections`);
      const section = stdout.slice(start).split('\n\n')[0] ?? '';
      return [...section.matchAll(/service : (\S+)/g)].map(([, name]) => name);
    };
    assert.deepEqual(shown('POST /api/v1/filing'), ['old', ...publicYardsticks]);
    assert.deepEqual(shown('GET /api/v1/provenance/{filingNo}'), ['old', ...publicYardsticks]);
    assert.deepEqual(shown('CreateFiling over Connect'), ['old', 'empty-handler']);
  }
  assert.match(stdout, /CPU a call \d+ µs, busiest thread \d+ µs/);
  assert.match(stdout, /Resident memory of service with \d+ filings: \d+ MB/);
  assert.match(stdout, /Resident memory of old with \d+ filings: \d+ MB/);
  assert.match(stdout, /Start of service with \d+ filings: ready after \d+ ms/);
  assert.match(stdout, /an inclusion proof +\S+ µs CPU/);
  assert.match(stdout, /audit: \d+\.\d s/);
  assert.match(stdout, /filing while tiles are read ÷ filing +\d/);
  for (const [events, deliveries] of [
    ['all alive, 100 events in one go', 900],
    ['all alive, 2 events a few a second', 18],
    ['10 more dead, 100 events in one go', 900],
    ['10 more dead, 2 events a few a second', 18],
  ]) {
    const line = `${events}: ${deliveries} deliveries +lag p50 \\d+ ms, p99 \\d+ ms +the last [\\d.]+ s after the last filing`;
    assert.match(stdout, new RegExp(line));
  }
  assert.match(stdout, /with dead ones ÷ all alive, .* \d+\.\d\d\n/);
  assert.match(stdout, /webhooks : no-webhooks +requests\/s +\d/);
  assert.match(stdout, /webhooks : old +requests\/s +\d/);
  assert.match(stdout, /all events of a round had arrived [\d.]+ s after its end/);
  const { closedLoop, offeredLoad, size, states }: Report = JSON.parse(readFileSync(json, 'utf8'));
  assert.deepEqual(
    closedLoop
      .filter(({ workload, connections }) => workload === 'filing' && connections === 64)
      .map(({ server }) => server),
    ['service', 'old', ...publicYardsticks],
  );
  const atLowestRate = offeredLoad.filter(
    ({ workload, offeredPerS }) => workload === 'provenance' && offeredPerS === 100,
  );
  assert.deepEqual(
    atLowestRate.map(({ server }) => server),
    ['service', ...publicYardsticks],
  );
  const sizes = (rows: readonly { server: string; filings: number }[]) =>
    rows.filter(({ server }) => server === 'service').map(({ filings }) => filings);
  assert.deepEqual(sizes(size), [100, 200, 100, 200]);
  assert.deepEqual(sizes(states), [100, 200]);
});

test('a smoke run compares the service on PostgreSQL with the one on SQLite', {
  skip: skipUnlessPostgres(),
}, async (t) => {
  const { code, stdout, stderr } = await bench(t, '--smoke', '--postgres', '--connections', '64');
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  assert.equal(stdout.match(/postgres : sqlite +requests\/s +\d/g)?.length, 4);
  assert.match(stdout, /An order: .*\n +postgres/);
  assert.match(stdout, /old snapshot : postgres/);
});

test('a smoke run compares two instances with one, also with a synchronous standby', {
  skip: skipUnlessPostgres(),
}, async (t) => {
  for (const more of [[], ['--standby', '--only', 'filing']]) {
    const { code, stdout, stderr } = await bench(t, '--smoke', '--two', '--connections', '64', ...more);
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    assert.equal(stdout.match(/two : one +requests\/s +\d/g)?.length, more.length === 0 ? 3 : 1);
  }
});

test('a server that does not start ends the bench with exit code 1', async (t) => {
  const broken = temporaryFolder(t);
  writeFileSync(join(broken, 'package.json'), '{"scripts":{"start":"node nothing.ts"}}');
  const { code, stderr, left } = await bench(t, '--smoke', '--only', 'typed', '--old', broken);
  assert.deepEqual({ code, left }, { code: 1, left: [] });
  assert.match(stderr, /^bench: The server old did not start/);
});

test('an unknown argument ends the bench with exit code 2', async (t) => {
  const { code, stderr, left } = await bench(t, '--only', 'escrow');
  assert.deepEqual({ code, left }, { code: 2, left: [] });
  assert.match(stderr, /^bench: --only must be one of/);
});
