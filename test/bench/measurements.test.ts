import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  doubtLines,
  type Figures,
  figuresOf,
  median,
  percentile,
  ratioLines,
} from '../../bench/measurements.ts';
import { cpuBetween, cpuTimes } from '../../bench/process-usage.ts';

const sent = {
  requests: 1_000,
  seconds: 0.5,
  p50Ms: 10,
  p99Ms: 20,
  p999Ms: 30,
  cpuS: 0.25,
  refused: 0,
  firstRefusal: '',
  members: '',
};
const figures = figuresOf(sent, { totalS: 0.4, busiestS: 0.3 });

function rounds(name: string, ...changes: Partial<Figures>[]) {
  return { name, figures: changes.map((change) => ({ ...figures, ...change })) };
}

test('a round gives requests a second, CPU time a call, and shares of a core', () => {
  assert.deepEqual(figures, {
    requestsPerS: 2_000,
    p50Ms: 10,
    p99Ms: 20,
    p999Ms: 30,
    cpuUs: 400,
    busiestUs: 300,
    serverCpu: 0.8,
    loadCpu: 0.5,
  });
});

test('a median is the middle value, or the mean of the two middle values', () => {
  assert.equal(median([9, 1, 2]), 2);
  assert.equal(median([4, 1, 2, 9]), 3);
  assert.ok(Number.isNaN(median([])));
});

test('ratios are computed per round, and shown with their range and bound', () => {
  const service = rounds('service', { requestsPerS: 900 }, { requestsPerS: 400 }, { requestsPerS: 300 });
  const floor = rounds('floor', { requestsPerS: 1_000 }, { requestsPerS: 500 }, { requestsPerS: 1_000 });
  const [requests, cpu, p50, p99] = ratioLines(service, floor, 64, 'filing');
  assert.match(
    requests ?? '',
    /service : floor +requests\/s +0\.80 \(rounds 0\.30 to 0\.90\) +required: at least 0\.85$/,
  );
  assert.match(cpu ?? '', /CPU a call +1\.00 .*required: at most 1\.60$/);
  assert.match(p50 ?? '', /p50 +1\.00 \(rounds 1\.00 to 1\.00\)$/);
  assert.match(p99 ?? '', /p99 +1\.00 .*required: at most 1\.30$/);
});

test('one connection, Fastify and the empty handler have bounds, the old service has none', () => {
  const required = (name: string, connections: number) =>
    ratioLines(rounds('service', {}), rounds(name, {}), connections)
      .map((line) => /(\S+) +1\.00 .*required: (.*)$/.exec(line)?.slice(1).join(': '))
      .filter((words) => words !== undefined);
  assert.deepEqual(required('floor', 1), ['p50: at most 1.50']);
  assert.deepEqual(required('fastify', 64), ['requests/s: at least 6.00']);
  assert.deepEqual(required('empty-handler', 64), ['requests/s: at least 0.90']);
  assert.deepEqual(required('old', 64), []);
  assert.deepEqual(required('floor', 256), []);
});

test('a server with little CPU time is reported as doubtful', () => {
  assert.deepEqual(doubtLines([rounds('service', {}), rounds('floor', {})]), []);
  const [doubt] = doubtLines([rounds('service', {}), rounds('floor', { serverCpu: 0.5 })]);
  assert.match(doubt ?? '', /DOUBTFUL: floor had less than 80 % of a core/);
});

test('the busiest thread is found among all threads, although some have ended', () => {
  const before = {
    totalS: 10,
    threadsS: new Map([
      ['1', 6],
      ['2', 1],
      ['3', 3],
    ]),
  };
  const after = {
    totalS: 15,
    threadsS: new Map([
      ['1', 7],
      ['2', 3],
      ['4', 0.5],
    ]),
  };
  assert.deepEqual(cpuBetween(before, after), { totalS: 5, busiestS: 2 });
});

test('CPU time of this process is read', { skip: process.platform !== 'linux' }, () => {
  const before = cpuTimes(process.pid);
  const spent = process.cpuUsage();
  while (process.cpuUsage(spent).user < 50_000);
  const { totalS, busiestS } = cpuBetween(before, cpuTimes(process.pid));
  assert.ok(totalS >= 0.03, `${totalS} s`);
  assert.ok(busiestS > 0 && busiestS <= totalS + 0.02, `${busiestS} of ${totalS} s`);
});

test('a missing measurement hides no other one in a percentile', () => {
  const valuesMs = [5, Number.NaN, 1, 3, Number.NaN, 2, 4];
  assert.deepEqual(
    [0, 0.5, 1].map((share) => percentile(valuesMs, share)),
    [1, 4, Number.NaN],
  );
});
