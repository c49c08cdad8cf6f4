import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { test } from 'node:test';
import { Key_Tier } from '../../../gen/artseal/v1/admin_pb.ts';
import { formRates, formRegistrationsMax } from '../../../src/domain/registration.ts';
import { createManualClock } from '../../support/clock.ts';
import { readDatabase } from '../../support/engine.ts';
import { startService } from '../../support/service.ts';
import { openTestProvider } from '../../support/simulator.ts';

const submissions = 10_000;

test(`a robot that sends the form ${submissions} times leaves the bound of registrations, and other calls go through`, async (t) => {
  const clock = createManualClock();
  const service = await startService(t, {
    ...{ clock, provider: openTestProvider(t, {}, clock), isStoreInThisThread: false },
    env: { ARTSEAL_ACCESS_FORM: 'yes', ARTSEAL_TRUSTED_PROXIES: '127.0.0.1' },
  });
  const { hostname, port } = new URL(service.publicUrl);
  const agent = new Agent({ keepAlive: true, maxSockets: 100 });
  t.after(() => agent.destroy());

  /** Sends a form from an address of its own, and returns the status. */
  function submit(nth: number): Promise<number | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
    const email = `robot-${nth}@example.com`;
    const body = String(
      new URLSearchParams({ email, name: 'x'.repeat(128), intendedUse: 'y'.repeat(1_000), tier: 'TRIAL' }),
    );
    const headers = {
      'Content-Type': 'application/x-www-form-urlencoded',
      'Content-Length': Buffer.byteLength(body),
      'X-Forwarded-For': `10.${nth >> 8}.${nth & 255}.1`,
    };
    const sent = request(
      { agent, hostname, port, method: 'POST', path: '/register', headers },
      (response) => {
        response.resume().on('end', () => resolve(response.statusCode));
      },
    );
    sent.on('error', reject).end(body);
    return promise;
  }

  const statuses = new Map<number | undefined, number>();
  const { burst, everyMs } = formRates.total;
  for (let nth = 0; nth < submissions; nth += burst) {
    const sent = await Promise.all(Array.from({ length: burst }, (_, place) => submit(nth + place)));
    for (const status of sent) statuses.set(status, (statuses.get(status) ?? 0) + 1);
    // With the rates alone, the robot would not reach the bound.
    assert.equal(await submit(submissions), 429);
    clock.leap(burst * everyMs);
  }
  assert.deepEqual(Object.fromEntries(statuses), {
    200: formRegistrationsMax,
    503: submissions - formRegistrationsMax,
  });
  const rows = await readDatabase(service.dataDir, (client) =>
    client.prepare('SELECT count(*) FROM registration').pluck().get(),
  );
  assert.equal(rows, formRegistrationsMax);
  // A full form also turns a known address away, and an operator is not limited.
  assert.equal(await submit(0), 503);
  const { access } = await service.operator();
  const person = { email: 'person@example.com', name: 'Qi', intendedUse: 'paintings', tier: Key_Tier.TRIAL };
  const { registration } = await access.preRegister(person);
  assert.equal(registration?.position, BigInt(formRegistrationsMax + 1));
});
