import assert from 'node:assert/strict';
import { test } from 'node:test';
import { and, eq } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { type Assembled, type Assembly, real } from '../../simulation/assembly.ts';
import { SimulationFailed, simulate } from '../../simulation/simulate.ts';
import { watchStatements } from '../../simulation/statements.ts';
import type { ServiceParts } from '../../src/app/service.ts';
import type { InstructionKind } from '../../src/domain/escrow.ts';
import { filingCommitment, recordSaltBytes } from '../../src/domain/filing-record.ts';
import { commitmentTo, saltBytes } from '../../src/domain/leaf.ts';
import type { PaymentStatus } from '../../src/domain/payment.ts';
import { recordHash } from '../../src/domain/provenance.ts';
import type { PaymentInstruction } from '../../src/payments/provider.ts';
import { caller, filing, provenanceRecord } from '../../src/store/engine/schema.ts';
import { storedFilingColumns } from '../../src/store/engine/stored-filing.ts';
import type { EscrowCase, OrderUpdate } from '../../src/store/reconciliation-commands.ts';
import { createEvidenceLog } from '../../src/store/sqlite/log.ts';
import type { SqliteDatabase } from '../../src/store/sqlite/statement.ts';
import { type Executed, perform, type StoreRequest } from '../../src/store/store.ts';
import { withoutTriggers } from '../support/forging.ts';
import { type AnyExecute, changed, failureOf, isA, type Mutant, withExecute } from './mutants.ts';

const orders = 100;
const seeds = ['1', '2', '3', '4', '5', '6', '7', '8', '9', '10'];

/** Changes how the service sends instructions to the provider. */
const withInstruct = (
  change: (instruct: ServiceParts['provider']['instruct']) => ServiceParts['provider']['instruct'],
): Partial<Assembly> => ({
  assemble: (parts) => {
    const { provider } = parts;
    return real.assemble({
      ...parts,
      provider: { ...provider, instruct: change(provider.instruct) },
    });
  },
});

/** A successful result, returned for a request that was not executed. */
const done: Executed = { outcome: { kind: 'DONE', result: true, isReplay: false } };

const isOfReconciliation = (request: StoreRequest): boolean =>
  isA('RecordSent', request) || isA('UpdateOrder', request);

/** How long a late commit takes, in simulated milliseconds. */
const slowMs = 2_000;

/** A store that returns from late batches before their commit. The next batch waits for that commit. */
const committingLate = (isLate: (requests: readonly StoreRequest[]) => boolean): Partial<Assembly> => ({
  openCore: (options) => {
    let isLateNow = false;
    let commitLate = () => {};
    watchStatements(options.dataDir, ({ source, client }, run) => {
      // A batch that failed may need a second transaction, for its reads.
      if (source.startsWith('BEGIN')) commitLate();
      if (source !== 'COMMIT' || !isLateNow) return run();
      commitLate = () => {
        client.exec('COMMIT');
        commitLate = () => {};
      };
      // No caller uses the return value of a COMMIT.
      return undefined as ReturnType<typeof run>;
    });
    const core = real.openCore(options);
    return {
      ...core,
      executeBatch: (requests) => {
        commitLate();
        isLateNow = isLate(requests);
        return core.executeBatch(requests);
      },
    };
  },
  assemble: (parts) => {
    let written = Promise.resolve();
    const change =
      (execute: AnyExecute): AnyExecute =>
      async (request) => {
        await written;
        const executed = await execute(request);
        if (isLate([request])) written = new Promise((resolve) => parts.clock.after(slowMs, resolve));
        return executed;
      };
    return real.assemble({ ...parts, store: changed(parts.store, change) });
  },
});

/** A store that commits right after it inserts a filing, before the rest of the batch. */
const committingHalves: Partial<Assembly> = {
  openCore: (options) => {
    watchStatements(options.dataDir, ({ source, client }, run) => {
      const result = run();
      if (source.startsWith('insert into "filing"')) client.exec('COMMIT; BEGIN IMMEDIATE');
      return result;
    });
    return real.openCore(options);
  },
};

/** The leaf that a mutant changes. A mutant that swaps two leaves also changes the one before it. */
const forgedLeaf = 20;

/** Runs SQL in the transaction that inserts `forgedLeaf`. */
const forging = (sql: string): Partial<Assembly> => ({
  openCore: (options) => {
    watchStatements(options.dataDir, ({ source, client }, run) => {
      const result = run();
      const isForged =
        source.startsWith('insert into "log_leaf"') &&
        client.prepare('SELECT max(id) FROM log_leaf').pluck().get() === forgedLeaf;
      if (isForged) withoutTriggers(client, () => client.exec(sql));
      return result;
    });
    return real.openCore(options);
  },
});

/** Appends all records of a database to its log again, with new salts. */
function logAgain(database: SqliteDatabase): void {
  const log = createEvidenceLog(database);
  const filings = database
    .select(storedFilingColumns)
    .from(filing)
    .innerJoin(caller, eq(caller.id, filing.callerId));
  for (const row of filings.all()) {
    const leaf = log.appendRecord({
      ...({ kind: 'FILING', number: row.filingNo, sequence: 1, atS: row.filedAtS } as const),
      saltBytes: recordSaltBytes(row.attachments),
      commitment: (salt) => filingCommitment(row, salt),
    });
    database.update(filing).set(leaf).where(eq(filing.id, row.id)).run();
  }
  for (const { position: sequence, recordedAtS: atS, ...row } of database
    .select()
    .from(provenanceRecord)
    .all()) {
    const { filingNo: number, event: kind } = row;
    const hash = recordHash({ ...row, sequence });
    const record = { kind, number, sequence, atS, saltBytes };
    const leaf = log.appendRecord({ ...record, commitment: (salt) => commitmentTo(hash, salt) });
    const { filingNo, position } = provenanceRecord;
    database
      .update(provenanceRecord)
      .set(leaf)
      .where(and(eq(filingNo, number), eq(position, sequence)))
      .run();
  }
  log.write();
}

/** Replaces the log at each start: the same records with new salts. */
const rewritingTheLog: Partial<Assembly> = {
  openCore: (options) => {
    const { dataDir } = options;
    let isOpened = false;
    watchStatements(dataDir, ({ source, client }, run) => {
      const result = run();
      if (source !== 'BEGIN IMMEDIATE' || isOpened) return result;
      isOpened = true;
      withoutTriggers(client, () => {
        client.exec('DELETE FROM log_leaf; DELETE FROM log_event');
        logAgain(drizzle({ client }));
      });
      return result;
    });
    return real.openCore(options);
  },
};

/** Writes each checkpoint to the file only when the next one is published. */
const writingCheckpointsLate: Partial<Assembly> = {
  createCheckpointFile: (folder) => {
    const file = real.createCheckpointFile(folder);
    let latest: string | undefined;
    return {
      ...file,
      read: async () => (latest === undefined ? file.read() : { note: latest, writtenAtMs: 0 }),
      write: async (note) => {
        if (latest !== undefined) await file.write(latest);
        latest = note;
      },
    };
  },
};

/** By how much look-ups of the second service are delayed, in simulated milliseconds. */
const lateMs = 3_000;

/**
 * Runs two services on one store: one handles calls, the other recovers orders. The responses to the look-ups of the
 * second one arrive late, so they are stale.
 */
function twoServices(parts: ServiceParts): Assembled {
  const { clock, provider } = parts;
  const lookUp: ServiceParts['provider']['lookUp'] = async (order, signal) => {
    const payment = await provider.lookUp(order, signal);
    await new Promise<void>((resolve) => clock.after(lateMs, resolve));
    return payment;
  };
  const { service: handling, calls } = real.assemble(parts);
  const { service: recovering } = real.assemble({ ...parts, provider: { ...provider, lookUp } });
  const stop = async () => {
    await Promise.all([handling.stop(), recovering.stop()]);
  };
  return { calls, service: { ...handling, start: recovering.start, stop } };
}

/** Stores each update whatever the current state of the order is. */
function withoutCompareAndSwap(parts: ServiceParts): ServiceParts {
  const { store } = parts;
  const upToDate = async (update: OrderUpdate): Promise<OrderUpdate> => {
    const current = await perform(store, { kind: 'FindCase', escrowId: update.escrowId });
    if (current === undefined) return update;
    const isOpen = (id: string) => current.open.some(({ instructionId }) => instructionId === id);
    const ended = update.ended.filter(({ instructionId }) => isOpen(instructionId));
    return { ...update, ended, from: current.order.state };
  };
  const change =
    (execute: AnyExecute): AnyExecute =>
    async (request) => {
      const { effect } = request;
      if (effect?.kind !== 'UpdateOrder') return execute(request);
      return execute({ ...request, effect: { ...effect, update: await upToDate(effect.update) } });
    };
  return { ...parts, store: changed(store, change) };
}

/** Stores the nonce of a CreateFiling call in one request, and the filing in another. */
const admittingSeparately =
  (execute: AnyExecute): AnyExecute =>
  async (request) => {
    const { admission, effect } = request;
    if (admission === undefined || !isA('FileArtwork', request)) return execute(request);
    // The idempotency key stays with the effect, and the count with the key: a repeated call is not counted.
    const { nonce, ...rest } = admission;
    const admitted = await execute({ admission: { nowS: admission.nowS, nonce } });
    return admitted.outcome.kind === 'NOT_ADMITTED' ? admitted : execute({ admission: rest, effect });
  };

const expectedStatuses: Record<InstructionKind, PaymentStatus> = {
  FREEZE: 'HELD',
  RELEASE: 'PAID_OUT',
  REFUND: 'RETURNED',
  CANCEL: 'RETURNED',
};

/** Changes the updates that the service stores for the statuses of the provider. */
const withUpdates = (change: (update: OrderUpdate) => OrderUpdate): Partial<Assembly> =>
  withExecute((execute) => (request) => {
    const { effect } = request;
    if (effect?.kind !== 'UpdateOrder') return execute(request);
    return execute({ ...request, effect: { ...effect, update: change(effect.update) } });
  });

/** Stores each change after the pay-out twice. */
const recordingTwice: Partial<Assembly> = withExecute((execute) => async (request) => {
  const { effect } = request;
  if (effect?.kind !== 'UpdateOrder' || effect.update.afterPayout === undefined) return execute(request);
  const { update } = effect;
  await execute({ ...request, effect: { ...effect, update: { ...update, ended: [], prepared: undefined } } });
  const expectedChanges = update.expectedChanges + 1;
  return execute({ ...request, effect: { ...effect, update: { ...update, expectedChanges } } });
});

const dayMs = 86_400_000;

let attempts = 0;
const underNewId = (instruction: PaymentInstruction): PaymentInstruction => {
  attempts += 1;
  const { kind, instructionId } = instruction;
  return kind === 'RELEASE' ? { ...instruction, instructionId: `${instructionId}-${attempts}` } : instruction;
};

const mutants: readonly Mutant[] = [
  {
    name: 'sends each RELEASE under a new id',
    assembly: withInstruct((instruct) => (instruction, signal) => instruct(underNewId(instruction), signal)),
    message: /not in the database|paid out 2 times/,
  },
  {
    name: 'treats a missing response as success',
    assembly: withInstruct((instruct) => async (instruction, signal) => {
      try {
        return await instruct(instruction, signal);
      } catch {
        const { kind, amount, currency } = instruction;
        return { status: expectedStatuses[kind], amount, currency };
      }
    }),
    message: /the provider says/,
  },
  {
    name: 'does not wait for the disk',
    assembly: committingLate((requests) => requests.some(isOfReconciliation)),
    message: /not in the database|not recorded as sent|a client (saw|was shown|got a response)/,
  },
  {
    name: 'does not record that it sends an instruction',
    assembly: withExecute(
      (execute) => async (request) => (isA('RecordSent', request) ? done : execute(request)),
    ),
    message: /which is not recorded as sent/,
  },
  {
    name: 'does not recover open orders at its start',
    assembly: {
      assemble: (parts) => {
        const { service, calls } = real.assemble(parts);
        return { calls, service: { ...service, start: async () => {} } };
      },
    },
    message: /are left open|the provider says|needs review|still waits for its buyer/,
  },
  {
    name: 'ignores the idempotency key when it opens an order',
    assembly: withExecute((execute) => (request) => {
      const { admission } = request;
      if (admission === undefined || !isA('OpenEscrow', request)) return execute(request);
      return execute({ ...request, admission: { ...admission, idempotency: undefined } });
    }),
    message: /opened ES-|named ES-|another buyer .* got /,
  },
  {
    name: 'updates orders without compare-and-swap',
    assembly: { assemble: (parts) => twoServices(withoutCompareAndSwap(parts)) },
    message: /its history is|the provider says|the (RELEASE|REFUND) returned /,
  },
  {
    name: 'responds before the commit',
    assembly: committingLate(
      (requests) =>
        requests.some((request) => isA('FileArtwork', request)) && !requests.some(isOfReconciliation),
    ),
    message: /a client got a response, but its nonce .* is not consumed/,
  },
  {
    name: 'stores the nonce and the effect of a call in two transactions',
    assembly: withExecute(admittingSeparately),
    message: /calls to file .* were admitted with .*; it is filed \d times|calls that count/,
  },
  {
    name: 'lets platforms resolve the orders of others',
    assembly: withExecute((execute) => (request) => {
      const { effect } = request;
      if (effect?.kind !== 'PrepareResolution') return execute(request);
      return execute({ ...request, effect: { ...effect, owner: undefined } });
    }),
    message: /was not rejected with ESCROW_NOT_FOUND|ReleaseEscrow ES-\S+ by .* got/,
  },
  {
    name: "uses one platform's buyers for all platforms",
    assembly: withExecute((execute) => async (request) => {
      const executed = await execute(request);
      if (!isA('FindCase', request) || executed.outcome.kind !== 'DONE') return executed;
      const found = executed.outcome.result as EscrowCase;
      const customer = found.buyer?.customer?.replace(/platform-\d+/, 'platform-1');
      const buyer = customer === undefined ? undefined : { customer };
      return { ...executed, outcome: { ...executed.outcome, result: { ...found, buyer } } } as Executed;
    }),
    message: /platform-[23] filed its artwork, and buyer-\S+ of platform-1 pays/,
  },
  {
    name: 'treats money returned after a release as a refund',
    assembly: withUpdates((update) =>
      update.afterPayout?.payment === 'RETURNED'
        ? { ...update, to: 'REFUNDED', afterPayout: undefined, review: undefined }
        : update,
    ),
    message: /its history is UNPAID,FROZEN,RELEASED,REFUNDED/,
  },
  {
    name: 'does not record what happens after a release',
    assembly: withUpdates((update) => ({ ...update, afterPayout: undefined })),
    message: /the last status in its history is PAID_OUT; the provider says|it still needs review/,
  },
  {
    name: 'records what happens after a release twice',
    assembly: recordingTwice,
    message:
      /its history has \S+ after the release; the provider had|its history has (\S+),\1 after the release, and there were \d+ alerts/,
  },
  {
    name: 'does not ask for review of what happens after a release',
    assembly: withUpdates((update) =>
      update.afterPayout === undefined ? update : { ...update, review: undefined },
    ),
    message: /its money is \S+, and it is neither in review nor due for a look-up/,
  },
  {
    name: 'waits for the buyer a day after the deadline',
    assembly: withUpdates(({ nextAction, ...update }) => ({
      ...update,
      nextAction: nextAction && { ...nextAction, untilMs: nextAction.untilMs + dayMs },
    })),
    message: /still waits for its buyer after the deadline/,
  },
  {
    name: 'does not cancel the hold of a closed order',
    assembly: withUpdates((update) =>
      update.from === 'CLOSED' ? { ...update, prepared: undefined, lookUpAtMs: undefined } : update,
    ),
    message: /it is CLOSED; the provider says (HELD|AWAITING_BUYER)/,
  },
  {
    name: 'commits in the middle of a batch',
    assembly: committingHalves,
    message:
      /left parts of an uncommitted transaction|its records are|leaf \d+ does not match|calls to file .* were admitted with .*; it is filed \d times|calls that count; \d+ are counted/,
  },
  {
    name: 'loses a leaf of its evidence log',
    assembly: forging(`DELETE FROM log_leaf WHERE id = ${forgedLeaf}`),
    message:
      /leaf 20 of the log is missing|leaf 20 does not match FILING|a checkpoint of size 21 was published, but the log has 20 leaves|has no leaf; its leaf index is 20|share leaf \d+|RECORD_DAMAGED/,
  },
  {
    name: 'changes a filing and its hash',
    assembly:
      forging(`UPDATE filing SET timestamp = '2019' || substr(timestamp, 5), hash = '${'0'.repeat(64)}'
      WHERE leaf_index = ${forgedLeaf}`),
    message: /leaf 20 does not match FILING/,
  },
  {
    name: 'swaps two leaves of its evidence log',
    assembly: forging(`UPDATE log_leaf SET id = -id WHERE id >= ${forgedLeaf - 1};
      UPDATE log_leaf SET id = ${2 * forgedLeaf - 1} + id, first = ${2 * forgedLeaf - 1} + id WHERE id < 0`),
    message: /leaf (19|20) is stored with wrong hashes/,
  },
  {
    name: 'loses a log event',
    assembly: forging('DELETE FROM log_event'),
    message: /leaf 0 has no record or log event/,
  },
  {
    name: 'publishes a checkpoint before it is on disk',
    assembly: writingCheckpointsLate,
    message: /a checkpoint of size \d+ was published, but the checkpoint file has size \d+/,
  },
  {
    name: 'rewrites its evidence log at each start',
    assembly: rewritingTheLog,
    message:
      /the tree of size \d+ differs from the published one|a checkpoint of size \d+ was published, but the log has|EvidenceLogError: the database does not agree with what was published|two checkpoints of \d+ leaves had different roots|The stored record does not match the evidence log/,
  },
];

for (const { name, assembly, message } of mutants) {
  test(`the simulation detects a service that ${name}`, async () => {
    const failure = await failureOf(seeds, (seed) => simulate({ seed, orders, assembly }));
    assert.ok(failure instanceof SimulationFailed, `the simulation did not detect it: ${failure}`);
    assert.match(failure.message, message);
    assert.match(failure.message, /npm run simulate -- --seed \d+ --orders \d+/);
  });
}

test('two services on one store are safe with compare-and-swap', async () => {
  await simulate({ seed: seeds[0] ?? '', orders: 60, assembly: { assemble: twoServices } });
});
