import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ProvenanceService } from '../../../gen/artseal/v1/provenance_pb.ts';
import type { UnaryOperation } from '../../../src/api/operation.ts';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { eventually } from '../../support/eventually.ts';
import { implementOnly } from '../../support/implement-only.ts';
import { ledger } from '../../support/tokens.ts';
import { typedClients } from '../../support/typed-clients.ts';
import { openOperations } from './bare-listener.ts';

/** A caller must not fill the memory of the server with reads. test/lib/concurrency.test.ts has the rules of the queue. */
test('64 reads of a caller run at the same time, and those that wait do not delay another caller', async (t) => {
  const started: string[] = [];
  const { promise: finished, resolve: finish } = Promise.withResolvers<void>();
  const getProvenance: UnaryOperation = {
    run: async (_, { principal }) => {
      started.push(principal.caller);
      await finished;
      return {};
    },
  };
  const { baseUrl } = await openOperations(t, implementOnly(ProvenanceService, 'read', { getProvenance }), {
    identify: (header) => ({ ...ledger, caller: String(header('authorization')) }),
  });
  const read = (token: string) =>
    typedClients(createTypedTransport(baseUrl, token)).provenance.getProvenance({});
  const calls = Array.from({ length: 70 }, () => read('many'));
  await eventually('64 reads run', 60_000, () => started.length >= 64);
  calls.push(read('one'));
  await eventually('the read of the other caller runs', 60_000, () => started.includes('Bearer one'));
  assert.equal(started.length, 65);
  finish();
  await Promise.all(calls);
  assert.equal(started.length, 71);
});
