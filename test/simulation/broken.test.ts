import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SimulationFailed, simulate } from '../../simulation/simulate.ts';
import type { OperationKind, Standing } from '../../src/domain/escrow.ts';
import type { Instruction } from '../../src/payment/institution.ts';
import { createService, type Service, type ServiceParts } from '../../src/service.ts';
import type { EscrowStore } from '../../src/store/store.ts';

/** A service with something wrong about it, which the simulation has to find. */
interface Mutant {
  readonly name: string;
  readonly make: (parts: ServiceParts) => Service;
  /** What the failure says. */
  readonly found: RegExp;
}

const orders = 100;
const seeds = ['1', '2', '3'];

/** A service whose store of orders differs. */
const withEscrows = (change: (escrows: EscrowStore) => Partial<EscrowStore>) => (parts: ServiceParts) => {
  const { store } = parts;
  const { escrows } = store;
  return createService({ ...parts, store: { ...store, escrows: { ...escrows, ...change(escrows) } } });
};

/** A service that gives its instructions otherwise. */
const withInstruct =
  (change: (instruct: ServiceParts['institution']['instruct']) => ServiceParts['institution']['instruct']) =>
  (parts: ServiceParts) =>
    createService({
      ...parts,
      institution: { ...parts.institution, instruct: change(parts.institution.instruct) },
    });

/** How late the second of two services hears what it asked, in simulated milliseconds. */
const lateMs = 3_000;

/**
 * Two services on one store, each of which takes an order to be its own: one takes calls, the other recovers,
 * and what that one hears is out of date.
 */
function twoAtOnce(parts: ServiceParts): Service {
  const { clock, institution } = parts;
  const lookUp: ServiceParts['institution']['lookUp'] = async (order, signal) => {
    const hold = await institution.lookUp(order, signal);
    await new Promise<void>((resolve) => clock.after(lateMs, resolve));
    return hold;
  };
  const taking = createService(parts);
  const recovering = createService({ ...parts, institution: { ...institution, lookUp } });
  return {
    ...taking,
    start: recovering.start,
    stop: async () => {
      await Promise.all([taking.stop(), recovering.stop()]);
    },
  };
}

/** Writes a settlement down whatever state the order has come to meanwhile. */
function settleBlindly(parts: ServiceParts): ServiceParts {
  const { escrows } = parts.store;
  const settle: EscrowStore['settle'] = async (settlement, at) => {
    const current = await escrows.findCase(settlement.escrowId);
    if (current === undefined) return false;
    const isOpen = (id: string) => current.open.some(({ operationId }) => operationId === id);
    const ended = settlement.ended.filter(({ operationId }) => isOpen(operationId));
    return escrows.settle({ ...settlement, ended, from: current.order.state }, at);
  };
  return { ...parts, store: { ...parts.store, escrows: { ...escrows, settle } } };
}

const asAsked: Record<OperationKind, Standing> = {
  FREEZE: 'HELD',
  RELEASE: 'PAID_OUT',
  REFUND: 'RETURNED',
  CANCEL: 'RETURNED',
};

let sendings = 0;
const underNewId = (instruction: Instruction): Instruction => {
  sendings += 1;
  const { kind, operationId } = instruction;
  return kind === 'RELEASE' ? { ...instruction, operationId: `${operationId}-${sendings}` } : instruction;
};

const mutants: readonly Mutant[] = [
  {
    name: 'gives each RELEASE under a new id',
    make: withInstruct((instruct) => (instruction, signal) => instruct(underNewId(instruction), signal)),
    found: /written down nowhere|paid out 2 times/,
  },
  {
    name: 'takes silence for consent',
    make: withInstruct((instruct) => async (instruction, signal) => {
      try {
        return await instruct(instruction, signal);
      } catch {
        const { kind, amount, currency } = instruction;
        return { standing: asAsked[kind], amount, currency };
      }
    }),
    found: /the institution says/,
  },
  {
    name: 'does not wait for the disk',
    make: (parts) => createService({ ...parts, store: { ...parts.store, durable: async () => {} } }),
    found: /written down nowhere|never sent|a client was told/,
  },
  {
    name: 'does not note that it gives an instruction',
    make: withEscrows(() => ({ send: async () => {} })),
    found: /which was never sent/,
  },
  {
    name: 'does not recover',
    make: (parts) => ({ ...createService(parts), start: async () => {} }),
    found: /left open|the institution says|needs a person/,
  },
  {
    name: 'forgets which order an idempotency key opened',
    make: withEscrows(({ open }) => ({
      open: (terms, at, work, owner) => open(terms, at, { ...work, idempotencyKey: undefined }, owner),
    })),
    found: /opened ES-|named ES-/,
  },
  {
    name: 'settles without compare-and-swap',
    make: (parts) => twoAtOnce(settleBlindly(parts)),
    found: /its history is|the institution says/,
  },
];

/** The failure that one of the seeds leads to; undefined if none does. */
async function failureOf(make: Mutant['make']): Promise<Error | undefined> {
  for (const seed of seeds) {
    const failure = await simulate({ seed, orders, createService: make }).then(
      () => undefined,
      (error) => error,
    );
    if (failure !== undefined) return failure;
  }
  return undefined;
}

for (const { name, make, found } of mutants) {
  test(`a service that ${name} is found out`, async () => {
    const failure = await failureOf(make);
    assert.ok(failure instanceof SimulationFailed, `it was not found out: ${failure}`);
    assert.match(failure.message, found);
    assert.match(failure.message, /npm run simulate -- --seed \d+ --orders \d+/);
  });
}

test('with compare-and-swap, even two at once do no harm', async () => {
  await simulate({ seed: seeds[0] ?? '', orders: 60, createService: twoAtOnce });
});
