import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readPlan } from '../../bench/plan.ts';

test('without arguments everything is measured, most of it over 64 connections', () => {
  const { workloads, logLeaves, rounds, sendings, filings, old, servers } = readPlan([]);
  assert.equal(logLeaves, 1_000_000);
  assert.deepEqual(workloads, ['filing', 'provenance', 'typed']);
  assert.deepEqual(
    { rounds, filings, old, servers },
    { rounds: 7, filings: 200_000, old: undefined, servers: [] },
  );
  assert.deepEqual(sendings, [
    { connections: 64, requests: 20_000 },
    { connections: 1, requests: 2_000 },
    { connections: 256, requests: 10_000 },
  ]);
});

test('arguments choose calls, connections, rounds and further servers', () => {
  const words = [
    '--only',
    'typed',
    '--connections',
    '1,16',
    '--rounds',
    '2',
    '--filings',
    '0',
    '--old',
    '/old',
  ];
  const { workloads, rounds, sendings, filings, old, servers } = readPlan([
    ...words,
    '--server',
    'go=/somewhere/server --quick',
  ]);
  assert.deepEqual(
    { workloads, rounds, filings, old },
    { workloads: ['typed'], rounds: 2, filings: 0, old: '/old' },
  );
  assert.deepEqual(
    sendings.map(({ connections }) => connections),
    [1, 16],
  );
  assert.deepEqual(servers, [{ name: 'go', command: ['/somewhere/server', '--quick'] }]);
});

test('the evidence log can be measured alone', () => {
  const { workloads, logLeaves } = readPlan(['--smoke', '--only', 'log']);
  assert.deepEqual({ workloads, logLeaves }, { workloads: [], logLeaves: 2_000 });
});

const refused = [
  { words: ['--only', 'escrow'], message: /--only must be one of filing, provenance, typed/ },
  { words: ['--rounds', '0'], message: /--rounds must be a whole number from 1/ },
  { words: ['--rounds', '1e2'], message: /--rounds must be a whole number from 1/ },
  { words: ['--filings', '-1'], message: /--filings/ },
  { words: ['--connections', '64,'], message: /--connections must be a whole number from 1 to 512/ },
  { words: ['--connections', '513'], message: /--connections must be a whole number from 1 to 512/ },
  { words: ['--server', 'go'], message: /--server must be NAME=COMMAND/ },
  { words: ['--server', 'floor=x'], message: /--server must have a name of its own, not floor/ },
  {
    words: ['--server', 'go=x', '--server', 'go=y'],
    message: /--server must have a name of its own, not go/,
  },
  { words: ['--fast'], message: /--fast/ },
];

for (const { words, message } of refused) {
  test(`${words.join(' ')} is rejected`, () => {
    assert.throws(() => readPlan(words), { message });
  });
}

test('platforms beside a busy one can be measured alone', () => {
  const { workloads, logLeaves, webhookEvents, neighbourEvents } = readPlan([
    '--smoke',
    '--only',
    'neighbours',
  ]);
  assert.deepEqual([workloads, logLeaves, webhookEvents, neighbourEvents], [[], undefined, undefined, 500]);
});
