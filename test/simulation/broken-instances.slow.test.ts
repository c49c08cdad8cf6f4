import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Assembly } from '../../simulation/assembly.ts';
import { SimulationFailed, simulate } from '../../simulation/simulate.ts';
import { takeLead } from '../../src/store/postgres/instances.ts';
import { takeFence } from '../../src/store/postgres/transactions.ts';
import type { Executed } from '../../src/store/store.ts';
import { createDatabase, skipUnlessPostgres } from '../support/postgres.ts';
import { failureOf, isA, withExecute } from './mutants.ts';

const skip = skipUnlessPostgres();
const orders = 20;
const seeds = ['1', '2', '3', '4', '5'];
/** Requests race, and the provider takes up to four seconds, in which another instance may send an instruction again. */
const races = { sendsTwice: true, rates: { delayMaxMs: 4_000, instruction: { SLOW: 1 } } } as const;

/** Runs two instances until a seed fails. Throws unless the failure matches. */
async function assertDetected(
  t: TestContext,
  message: RegExp,
  assembly: Partial<Assembly> = {},
): Promise<void> {
  let tries = 0;
  const failure = await failureOf(seeds, async (seed) => {
    tries += 1;
    const database = await createDatabase(t);
    return simulate({ seed, orders, database, instances: 2, ...races, assembly });
  });
  t.diagnostic(`seed ${tries} failed: ${failure?.message.split('\n', 1)}`);
  assert.ok(failure instanceof SimulationFailed, `the simulation did not detect it: ${failure}`);
  assert.match(failure.message, message);
}

/** Removes a lock until the end of the test. */
function withoutLock(t: TestContext, lock: { text: string }, without: string): void {
  const { text } = lock;
  lock.text = without;
  t.after(() => {
    lock.text = text;
  });
}

test('the simulation detects two instances without the fence', { skip }, async (t) => {
  withoutLock(t, takeFence, 'SELECT 1');
  await assertDetected(
    t,
    /calls to file .* were admitted with .*; it is filed \d times|duplicate key value violates unique constraint/,
  );
});

test('the simulation detects two instances without the lock of the leader', { skip }, async (t) => {
  withoutLock(t, takeLead, 'SELECT true AS leads');
  await assertDetected(t, /does the background work, and service \d leads/);
});

test('the simulation detects an instance that sends what another one sends', { skip }, async (t) => {
  const assembly = withExecute((execute) => async (request) => {
    const executed = await execute(request);
    const { outcome } = executed;
    if (!isA('RecordSent', request) || outcome.kind !== 'DONE') return executed;
    return { ...executed, outcome: { ...outcome, result: true } } as Executed;
  });
  await assertDetected(t, /sends \S+, and service \d waits for its response/, assembly);
});
