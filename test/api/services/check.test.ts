import assert from 'node:assert/strict';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { CheckResponse_Level } from '../../../gen/artseal/v1/maintenance_pb.ts';
import { startService } from '../../support/service.ts';
import { typedError } from '../../support/typed-clients.ts';

test('a check has a finding for each part, with the settings of the server', async (t) => {
  const service = await startService(t, { env: { ARTSEAL_TIME_ZONE: 'Asia/Shanghai' } });
  const { maintenance } = await service.operator();
  const stream = maintenance.check({})[Symbol.asyncIterator]();
  const { value: first } = await stream.next();
  assert.equal(first.text, `sandbox in ${service.dataDir}, CNY, Asia/Shanghai, simulated`);
  await typedError(Array.fromAsync(maintenance.check({})), 'RATE_LIMITED');
  const others = await Array.fromAsync({ [Symbol.asyncIterator]: () => stream });
  const parts = new Map(others.map((finding) => [finding.part, finding]));
  assert.equal(parts.get('serving')?.text.includes(`the process ${process.pid} serves this folder`), true);
  for (const part of [
    'disk',
    'database',
    'evidence log',
    'clock',
    'master key',
    'address',
    'provider',
    'backup',
  ])
    assert.ok(parts.has(part), part);
  assert.ok(others.every(({ level }) => level !== CheckResponse_Level.FAULT));

  chmodSync(join(service.dataDir, 'artseal.db'), 0o666);
  const faults = (await Array.fromAsync(maintenance.check({}))).filter(
    ({ level }) => level === CheckResponse_Level.FAULT,
  );
  assert.deepEqual([...new Set(faults.map(({ part }) => part))].slice(0, 1), ['files']);
});
