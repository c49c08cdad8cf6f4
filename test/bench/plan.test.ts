import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readPlan } from '../../bench/plan.ts';

test('without arguments everything is measured, most of it over 64 connections', () => {
  const { workloads, logLeaves, rounds, sendings, filings, old } = readPlan([]);
  assert.equal(logLeaves, 1_000_000);
  assert.deepEqual(workloads, ['filing', 'keyed', 'provenance', 'typed']);
  assert.deepEqual({ rounds, filings, old }, { rounds: 7, filings: 200_000, old: undefined });
  assert.deepEqual(sendings, [
    { connections: 64, requests: 20_000 },
    { connections: 1, requests: 2_000 },
    { connections: 256, requests: 10_000 },
  ]);
});

const planOf = (words: string) => readPlan(words.split(' '));

test('one part can be measured alone', () => {
  const log = planOf('--smoke --only log');
  assert.deepEqual([log.workloads, log.logLeaves], [[], 2_000]);
  const { workloads, logLeaves, webhookEvents, neighbourEvents } = planOf('--smoke --only neighbours');
  assert.deepEqual([workloads, logLeaves, webhookEvents, neighbourEvents], [[], undefined, undefined, 500]);
});

test('on PostgreSQL only what both engines do is measured', () => {
  const { workloads, orders, logLeaves } = planOf('--postgres');
  assert.deepEqual([workloads, orders, logLeaves], [['filing', 'keyed', 'provenance'], 200, undefined]);
  assert.throws(() => planOf('--postgres --only log'), /--only must be one of filing, keyed/);
});

test('arguments choose calls, connections, rounds and another checkout', () => {
  const { workloads, rounds, sendings, filings, old } = planOf(
    '--only typed --connections 1,16 --rounds 2 --filings 0 --old /old',
  );
  assert.deepEqual(
    { workloads, rounds, filings, old },
    { workloads: ['typed'], rounds: 2, filings: 0, old: '/old' },
  );
  assert.deepEqual(
    sendings.map(({ connections }) => connections),
    [1, 16],
  );
});

for (const [words, message] of [
  ['--only escrow', /--only must be one of filing, keyed, provenance, typed/],
  ['--rounds 0', /--rounds must be a whole number from 1/],
  ['--rounds 1e2', /--rounds must be a whole number from 1/],
  ['--filings -1', /--filings/],
  ['--connections 64,', /--connections must be a whole number from 1 to 512/],
  ['--connections 513', /--connections must be a whole number from 1 to 512/],
  ['--fast', /--fast/],
] as const)
  test(`${words} is rejected`, () => {
    assert.throws(() => planOf(words), { message });
  });
