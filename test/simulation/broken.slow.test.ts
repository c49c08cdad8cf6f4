import assert from 'node:assert/strict';
import { test } from 'node:test';
import type Sqlite from 'better-sqlite3';
import { and, eq } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { type Assembled, type Assembly, real } from '../../simulation/assembly.ts';
import { SimulationFailed, simulate } from '../../simulation/simulate.ts';
import { watchStatements } from '../../simulation/statements.ts';
import type { ServiceParts } from '../../src/app/service.ts';
import type { InstructionKind } from '../../src/domain/escrow.ts';
import type { PaymentStatus } from '../../src/domain/payment.ts';
import { recordHash } from '../../src/domain/provenance.ts';
import type { PaymentInstruction } from '../../src/payments/provider.ts';
import type { EscrowCase, OrderUpdate } from '../../src/store/reconciliation-commands.ts';
import { createEvidenceLog } from '../../src/store/sqlite/evidence-log.ts';
import { filing, provenanceRecord } from '../../src/store/sqlite/schema.ts';
import type { Database } from '../../src/store/sqlite/statement.ts';
import { type Executed, type Kind, perform, type Store, type StoreRequest } from '../../src/store/store.ts';

/** A service with something wrong about it, which the simulation has to find. */
interface Mutant {
  readonly name: string;
  readonly assembly: Partial<Assembly>;
  /** What the failure says. */
  readonly found: RegExp;
}

const orders = 100;
const seeds = ['1', '2', '3', '4', '5', '6', '7', '8', '9', '10'];

type AnyExecute = (unit: StoreRequest) => Promise<Executed>;

/** A service whose store carries units out otherwise. */
const withExecute = (change: (execute: AnyExecute) => AnyExecute): Partial<Assembly> => ({
  assemble: (parts) => real.assemble({ ...parts, store: changed(parts.store, change) }),
});

function changed(store: Store, change: (execute: AnyExecute) => AnyExecute): Store {
  return { ...store, execute: change(store.execute) as Store['execute'] };
}

/** A service that gives its instructions otherwise. */
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

/** What a unit came to that took no effect, and says it did. */
const done: Executed = { outcome: { kind: 'DONE', result: undefined, isReplay: false } };

const isA = <K extends Kind>(kind: K, { effect }: StoreRequest): boolean => effect?.kind === kind;

const isOfReconciliation = (unit: StoreRequest): boolean =>
  isA('RecordSent', unit) || isA('UpdateOrder', unit);

/** How long the disk takes over a commit that nobody waits for, in simulated milliseconds. */
const slowMs = 2_000;

/** A store that replies to late batches before they are on disk; those that follow wait for the disk. */
const committingLate = (isLate: (units: readonly StoreRequest[]) => boolean): Partial<Assembly> => ({
  openCore: (options) => {
    let isLateNow = false;
    let commitLate = () => {};
    watchStatements(options.dataDir, ({ source, client }, run) => {
      // A batch may need a second transaction, for what only reads of one that failed.
      if (source.startsWith('BEGIN')) commitLate();
      if (source !== 'COMMIT' || !isLateNow) return run();
      commitLate = () => {
        client.exec('COMMIT');
        commitLate = () => {};
      };
      // Nobody looks at what it returns.
      return undefined as ReturnType<typeof run>;
    });
    const core = real.openCore(options);
    return {
      ...core,
      executeBatch: (units) => {
        commitLate();
        isLateNow = isLate(units);
        return core.executeBatch(units);
      },
    };
  },
  assemble: (parts) => {
    let written = Promise.resolve();
    const change =
      (execute: AnyExecute): AnyExecute =>
      async (unit) => {
        await written;
        const executed = await execute(unit);
        if (isLate([unit])) written = new Promise((resolve) => parts.clock.after(slowMs, resolve));
        return executed;
      };
    return real.assemble({ ...parts, store: changed(parts.store, change) });
  },
});

/** A store that commits what it has of a filing before it writes the source record down. */
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

/** Changes what triggers keep from being changed. */
function forge(client: Sqlite.Database, change: () => void): void {
  const triggers = client
    .prepare<[], { name: string; sql: string }>(`SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'`)
    .all();
  for (const { name } of triggers) client.exec(`DROP TRIGGER "${name}"`);
  change();
  for (const { sql } of triggers) client.exec(sql);
}

/** The leaf that is forged, and the one before it is as well where two are exchanged. */
const forgedLeaf = 20;

/** A service in whose database something is changed, in the transaction that writes a certain leaf. */
const forging = (sql: string): Partial<Assembly> => ({
  openCore: (options) => {
    watchStatements(options.dataDir, ({ source, client }, run) => {
      const result = run();
      const isForged =
        source.startsWith('insert into "log_leaf"') &&
        client.prepare('SELECT max(id) FROM log_leaf').pluck().get() === forgedLeaf;
      if (isForged) forge(client, () => client.exec(sql));
      return result;
    });
    return real.openCore(options);
  },
});

/** Appends all records of a database to its log, with other salts. */
function logAgain(database: Database): void {
  const log = createEvidenceLog(database);
  for (const { id, filingNo: number, hash, filedAtS: atS } of database.select().from(filing).all()) {
    const leaf = log.appendRecord({ kind: 'FILING', number, sequence: 1, atS, evidenceHash: hash });
    database.update(filing).set(leaf).where(eq(filing.id, id)).run();
  }
  for (const { position: sequence, recordedAtS: atS, ...row } of database
    .select()
    .from(provenanceRecord)
    .all()) {
    const { filingNo: number, event: kind } = row;
    const evidenceHash = recordHash({ ...row, sequence });
    const leaf = log.appendRecord({ kind, number, sequence, atS, evidenceHash });
    const { filingNo, position } = provenanceRecord;
    database
      .update(provenanceRecord)
      .set(leaf)
      .where(and(eq(filingNo, number), eq(position, sequence)))
      .run();
  }
  log.write();
}

/** A service that replaces its log whenever it starts: the same records with other salts. */
const rewritingTheLog: Partial<Assembly> = {
  openCore: (options) => {
    const { dataDir } = options;
    let isOpened = false;
    watchStatements(dataDir, ({ source, client }, run) => {
      const result = run();
      if (source !== 'BEGIN IMMEDIATE' || isOpened) return result;
      isOpened = true;
      forge(client, () => {
        client.exec('DELETE FROM log_leaf; DELETE FROM log_event');
        logAgain(drizzle({ client }));
      });
      return result;
    });
    return real.openCore(options);
  },
};

/** A service whose checkpoints are on disk when the next one is published. */
const keepingLate: Partial<Assembly> = {
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

/** How late the second of two services hears what it asked, in simulated milliseconds. */
const lateMs = 3_000;

/**
 * Two services on one store, each of which takes an order to be its own: one takes calls, the other recovers,
 * and what that one hears is out of date.
 */
function twoAtOnce(parts: ServiceParts): Assembled {
  const { clock, provider } = parts;
  const lookUp: ServiceParts['provider']['lookUp'] = async (order, signal) => {
    const payment = await provider.lookUp(order, signal);
    await new Promise<void>((resolve) => clock.after(lateMs, resolve));
    return payment;
  };
  const { service: taking, calls } = real.assemble(parts);
  const { service: recovering } = real.assemble({ ...parts, provider: { ...provider, lookUp } });
  const stop = async () => {
    await Promise.all([taking.stop(), recovering.stop()]);
  };
  return { calls, service: { ...taking, start: recovering.start, stop } };
}

/** Writes an update down whatever state the order has come to meanwhile. */
function settleBlindly(parts: ServiceParts): ServiceParts {
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
    async (unit) => {
      const { effect } = unit;
      if (effect?.kind !== 'UpdateOrder') return execute(unit);
      return execute({ ...unit, effect: { ...effect, update: await upToDate(effect.update) } });
    };
  return { ...parts, store: changed(store, change) };
}

/** Lets a call to file in, and files in a unit of its own. */
const admittingApart =
  (execute: AnyExecute): AnyExecute =>
  async (unit) => {
    const { admission, effect } = unit;
    if (admission === undefined || !isA('FileArtwork', unit)) return execute(unit);
    // The key has to stay with the effect, and the count with the key: a repetition is not counted.
    const { nonce, ...rest } = admission;
    const admitted = await execute({ admission: { nowS: admission.nowS, nonce } });
    return admitted.outcome.kind === 'NOT_ADMITTED' ? admitted : execute({ admission: rest, effect });
  };

const asAsked: Record<InstructionKind, PaymentStatus> = {
  FREEZE: 'HELD',
  RELEASE: 'PAID_OUT',
  REFUND: 'RETURNED',
  CANCEL: 'RETURNED',
};

/** A service that writes otherwise down what providers say of orders. */
const withUpdates = (change: (update: OrderUpdate) => OrderUpdate): Partial<Assembly> =>
  withExecute((execute) => (unit) => {
    const { effect } = unit;
    if (effect?.kind !== 'UpdateOrder') return execute(unit);
    return execute({ ...unit, effect: { ...effect, update: change(effect.update) } });
  });

/** A service that notes each thing after a release twice. */
const notingTwice: Partial<Assembly> = withExecute((execute) => async (unit) => {
  const { effect } = unit;
  if (effect?.kind !== 'UpdateOrder' || effect.update.afterPayout === undefined) return execute(unit);
  await execute({
    ...unit,
    effect: { ...effect, update: { ...effect.update, ended: [], prepared: undefined } },
  });
  return execute(unit);
});

const longWaitMs = 86_400_000;

let sendings = 0;
const underNewId = (instruction: PaymentInstruction): PaymentInstruction => {
  sendings += 1;
  const { kind, instructionId } = instruction;
  return kind === 'RELEASE' ? { ...instruction, instructionId: `${instructionId}-${sendings}` } : instruction;
};

const mutants: readonly Mutant[] = [
  {
    name: 'gives each RELEASE under a new id',
    assembly: withInstruct((instruct) => (instruction, signal) => instruct(underNewId(instruction), signal)),
    found: /stored nowhere|paid out 2 times/,
  },
  {
    name: 'takes silence for consent',
    assembly: withInstruct((instruct) => async (instruction, signal) => {
      try {
        return await instruct(instruction, signal);
      } catch {
        const { kind, amount, currency } = instruction;
        return { status: asAsked[kind], amount, currency };
      }
    }),
    found: /the provider says/,
  },
  {
    name: 'does not wait for the disk',
    assembly: committingLate((units) => units.some(isOfReconciliation)),
    found: /stored nowhere|never sent|a client (saw|was shown|got a response)/,
  },
  {
    name: 'does not note that it gives an instruction',
    assembly: withExecute((execute) => async (unit) => (isA('RecordSent', unit) ? done : execute(unit))),
    found: /which was never sent/,
  },
  {
    name: 'does not recover',
    assembly: {
      assemble: (parts) => {
        const { service, calls } = real.assemble(parts);
        return { calls, service: { ...service, start: async () => {} } };
      },
    },
    found: /left open|the provider says|needs a person|still awaits its buyer/,
  },
  {
    name: 'forgets which order an idempotency key opened',
    assembly: withExecute((execute) => (unit) => {
      const { admission } = unit;
      if (admission === undefined || !isA('OpenEscrow', unit)) return execute(unit);
      return execute({ ...unit, admission: { ...admission, idempotency: undefined } });
    }),
    found: /opened ES-|named ES-|another buyer .* got /,
  },
  {
    name: 'settles without compare-and-swap',
    assembly: { assemble: (parts) => twoAtOnce(settleBlindly(parts)) },
    found: /its history is|the provider says|the \w+ was answered with/,
  },
  {
    name: 'answers before the commit',
    assembly: committingLate(
      (units) => units.some((unit) => isA('FileArtwork', unit)) && !units.some(isOfReconciliation),
    ),
    found: /a client got a response, but its nonce .* is not consumed/,
  },
  {
    name: 'lets a call in and takes its effect in another unit',
    assembly: withExecute(admittingApart),
    found: /calls to file .* were admitted with .*; it is filed \d times|calls that count/,
  },
  {
    name: 'lets platforms move the money of others',
    assembly: withExecute((execute) => (unit) => {
      const { effect } = unit;
      if (effect?.kind !== 'PrepareResolution') return execute(unit);
      return execute({ ...unit, effect: { ...effect, owner: undefined } });
    }),
    found: /was not refused with ESCROW_NOT_FOUND|ReleaseEscrow ES-\S+ by .* got/,
  },
  {
    name: 'takes the buyers of one platform for those of all',
    assembly: withExecute((execute) => async (unit) => {
      const executed = await execute(unit);
      if (!isA('FindCase', unit) || executed.outcome.kind !== 'DONE') return executed;
      const found = executed.outcome.result as EscrowCase;
      const customer = found.buyer?.customer?.replace(/platform-\d+/, 'platform-1');
      const buyer = customer === undefined ? undefined : { customer };
      return { ...executed, outcome: { ...executed.outcome, result: { ...found, buyer } } } as Executed;
    }),
    found: /it is for a work of platform-[23], and buyer-\S+ of platform-1 pays/,
  },
  {
    name: 'takes money that comes back for a refund',
    assembly: withUpdates((update) =>
      update.afterPayout?.payment === 'RETURNED'
        ? { ...update, to: 'REFUNDED', afterPayout: undefined, review: undefined }
        : update,
    ),
    found: /its history is UNPAID,FROZEN,RELEASED,REFUNDED/,
  },
  {
    name: 'writes down nothing of what follows a release',
    assembly: withUpdates((update) => ({ ...update, afterPayout: undefined })),
    found: /its history has PAID_OUT last; the provider says|it still needs a person/,
  },
  {
    name: 'writes what follows a release down twice',
    assembly: notingTwice,
    found:
      /its history has \S+ after the release; there was|its history has (\S+),\1, and a person was called/,
  },
  {
    name: 'calls nobody to what follows a release',
    assembly: withUpdates((update) =>
      update.afterPayout === undefined ? update : { ...update, review: undefined },
    ),
    found: /its money is \S+, and nobody looks at it/,
  },
  {
    name: 'waits for buyers as long as they like',
    assembly: withUpdates(({ nextAction, ...update }) => ({
      ...update,
      nextAction: nextAction && { ...nextAction, untilMs: nextAction.untilMs + longWaitMs },
    })),
    found: /still awaits its buyer, whose time is over/,
  },
  {
    name: 'leaves what is held for a closed order where it is',
    assembly: withUpdates((update) =>
      update.from === 'CLOSED' ? { ...update, prepared: undefined, lookUpAtMs: undefined } : update,
    ),
    found: /it is CLOSED; the provider says (HELD|AWAITING_BUYER)/,
  },
  {
    name: 'commits in the middle of a batch',
    assembly: committingHalves,
    found:
      /left a part of what was not committed|its records are|leaf \d+ does not match|calls to file .* were admitted with .*; it is filed \d times|calls that count; \d+ are counted/,
  },
  {
    name: 'loses a leaf of its log',
    assembly: forging(`DELETE FROM log_leaf WHERE id = ${forgedLeaf}`),
    found:
      /leaf 20 of the log is missing|leaf 20 does not match FILING|a checkpoint of size 21 was published, but the log has 20 leaves|has no leaf; its leaf index is 20|share leaf \d+|RECORD_DAMAGED/,
  },
  {
    name: 'commits to something else than it stores',
    assembly: forging(`UPDATE filing SET salt = zeroblob(32) WHERE leaf_index = ${forgedLeaf}`),
    found: /leaf 20 does not match FILING/,
  },
  {
    name: 'changes a filing with its hash',
    assembly:
      forging(`UPDATE filing SET timestamp = '2019' || substr(timestamp, 5), hash = '${'0'.repeat(64)}'
      WHERE leaf_index = ${forgedLeaf}`),
    found: /leaf 20 does not match FILING/,
  },
  {
    name: 'exchanges two leaves of its log',
    assembly: forging(`UPDATE log_leaf SET id = -id WHERE id >= ${forgedLeaf - 1};
      UPDATE log_leaf SET id = ${2 * forgedLeaf - 1} + id, first = ${2 * forgedLeaf - 1} + id WHERE id < 0`),
    found: /leaf (19|20) is stored with wrong hashes/,
  },
  {
    name: 'keeps a record beside the leaf of another',
    assembly: forging(`UPDATE filing SET leaf_index = ${2 * forgedLeaf - 1} - leaf_index
      WHERE leaf_index >= ${forgedLeaf - 1}`),
    found: /leaf \d+ does not match \S+ AS-\S+ \d;/,
  },
  {
    name: 'forgets a log event',
    assembly: forging('DELETE FROM log_event'),
    found: /leaf 0 has no record or log event/,
  },
  {
    name: 'publishes a checkpoint before it is on disk',
    assembly: keepingLate,
    found: /a checkpoint of size \d+ was published, but the checkpoint file has size \d+/,
  },
  {
    name: 'makes its log again',
    assembly: rewritingTheLog,
    found:
      /the tree of size \d+ differs from the published one|EvidenceLogError: the database does not agree with what was published|two trees of \d+ leaves were shown|The stored record does not match the evidence log/,
  },
];

/** The failure that one of the seeds leads to; undefined if none does. */
async function failureOf(assembly: Mutant['assembly']): Promise<Error | undefined> {
  for (const seed of seeds) {
    const failure = await simulate({ seed, orders, assembly }).then(
      () => undefined,
      (error) => error,
    );
    if (failure !== undefined) return failure;
  }
  return undefined;
}

for (const { name, assembly, found } of mutants) {
  test(`a service that ${name} is found out`, async () => {
    const failure = await failureOf(assembly);
    assert.ok(failure instanceof SimulationFailed, `it was not found out: ${failure}`);
    assert.match(failure.message, found);
    assert.match(failure.message, /npm run simulate -- --seed \d+ --orders \d+/);
  });
}

test('with compare-and-swap, even two at once do no harm', async () => {
  await simulate({ seed: seeds[0] ?? '', orders: 60, assembly: { assemble: twoAtOnce } });
});
