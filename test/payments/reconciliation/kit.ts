import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { createCalendar } from '../../../src/domain/calendar.ts';
import type { EscrowState } from '../../../src/domain/escrow.ts';
import type { Decision } from '../../../src/domain/resolution.ts';
import { createLog } from '../../../src/lib/log.ts';
import {
  type ReconciliationLimits,
  reconciliationLimits,
} from '../../../src/payments/reconciliation/limits.ts';
import {
  createReconciler,
  type ReconcilerDependencies,
} from '../../../src/payments/reconciliation/reconciler.ts';
import { createRecovery } from '../../../src/payments/reconciliation/recovery.ts';
import type { Instruction } from '../../../src/store/escrow-commands.ts';
import { createSqliteStore } from '../../../src/store/sqlite/engine.ts';
import { type Execute, type Instances, type Kind, perform } from '../../../src/store/store.ts';
import { newKey, painting, terms } from '../../store/promises/fixtures.ts';
import { tester } from '../../support/audit-log.ts';
import { createManualClock } from '../../support/clock.ts';
import { openTestProvider } from '../../support/simulator.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

/** The limits of a kit: those of the service, with the long ones short enough for a test. */
export const kitLimits: ReconciliationLimits = {
  ...reconciliationLimits,
  freezeDeadlineMs: 30_000,
  longestRetryMs: 10_000,
  quietLookUpMs: 30_000,
};

/** A reconciler on a real store; the test controls time and provider. */
export type Kit = Awaited<ReturnType<typeof openKit>>;

/** What instances on one store share. */
interface Shared {
  readonly store?: { readonly instances: Instances | undefined };
}

/** Turns of the event loop that a step of recovery takes at most: its queries, and a commit after each. */
const turnsPerStep = 20;

/** Waits until nothing happens any more without time moving on. */
export function quiet(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let left = turnsPerStep;
  const turn = () => {
    left -= 1;
    if (left > 0) setImmediate(turn);
    else resolve();
  };
  turn();
  return promise;
}

/** Opens a kit, which is closed after the test. */
export async function openKit(
  test: Pick<TestContext, 'after'>,
  limits: Partial<ReconciliationLimits> = {},
  instances?: Instances,
) {
  const dataDir = temporaryFolder(test);
  const store = createSqliteStore({ dataDir, environment: 'sandbox', currency: 'CNY', opening: 'NEW' });
  const clock = createManualClock(Date.parse('2026-11-21T12:00:00Z'));
  const provider = openTestProvider(test, {}, clock);
  const calendar = createCalendar('UTC');
  const logged: { msg: string; level: number }[] = [];
  const log = createLog({ write: (line) => logged.push(JSON.parse(line)) });
  const now = () => ({ atMs: clock.nowMs(), timestamp: calendar.timestamp(clock.nowMs()) });
  const execute: Execute = (command) => perform(store, command);
  let failing: { readonly kind: Kind; readonly error: Error } | undefined;
  let failures = 0;
  const executeOrFail: Execute = async (command) => {
    if (command.kind !== failing?.kind) return execute(command);
    failures += 1;
    throw failing.error;
  };
  let named = 0;
  const newInstructionId = () => {
    named += 1;
    return `operation-${named}`;
  };
  const begin = (over: Partial<Pick<ReconcilerDependencies, 'execute' | 'clock'>> & Shared = {}) => {
    const parts = {
      ...{ execute: executeOrFail, provider, clock, now, newInstructionId, log },
      ...{ store: { instances }, ...over },
      currency: 'CNY',
      random: () => 0,
      limits: { ...kitLimits, ...limits },
    };
    const reconciler = createReconciler(parts);
    return { reconciler, recovery: createRecovery({ ...parts, reconciler }) };
  };
  let { reconciler, recovery } = begin();
  const end = async () => {
    recovery.stop();
    await reconciler.stop();
  };
  test.after(async () => {
    await end();
    await store.close();
  });
  const addPlatform = (name: string) => {
    const platform = { name, tier: 'ENTERPRISE', monthlyQuota: undefined } as const;
    return execute({ kind: 'AddPlatform', by: tester, platform, key: newKey() });
  };
  const platform = await addPlatform('gallery');
  await recovery.start();
  const ordered = ({ callerId, caller } = platform) => ({
    ...{ at: now(), work: { callerId, caller, instructionId: newInstructionId() }, owner: undefined },
  });
  const caseOf = async (escrowId: string) => {
    const found = await execute({ kind: 'FindCase', escrowId });
    return found ?? assert.fail(`There is no order ${escrowId}.`);
  };

  return {
    /** Executes a command, whatever fails for the reconciler. */
    execute,
    ...{ clock, dataDir, provider, platform, addPlatform },
    /** The log lines. */
    logged,
    /** Makes all commands of a kind fail for the reconciler. Returns a function that ends it and returns how many failed. */
    fail: (kind: Kind, error: Error) => {
      failing = { kind, error };
      failures = 0;
      return () => {
        failing = undefined;
        return failures;
      };
    },
    /** Opens an order of a platform, the kit's own by default, and sends its FREEZE. Returns its id. */
    open: async (of = platform) => {
      const by = { callerId: of.callerId, caller: of.caller };
      const { filingNo } = await execute({ kind: 'FileArtwork', artwork: painting, at: now(), by });
      const opening = { terms: terms(filingNo), violations: [], parties: undefined, ...ordered(of) };
      const operation = await execute({ kind: 'OpenEscrow', ...opening });
      await reconciler.carryOut(operation).catch(() => {});
      return operation.order.escrowId;
    },
    /** Prepares a resolution and sends it. */
    resolve: async (resolution: 'RELEASE' | 'REFUND', escrowId: string) =>
      reconciler.carryOut(await execute({ kind: 'PrepareResolution', resolution, escrowId, ...ordered() })),
    /** Sends an instruction unless it was sent before. */
    carryOut: (instruction: Instruction) => reconciler.carryOut(instruction),
    case: caseOf,
    stateOf: async (escrowId: string) => (await caseOf(escrowId)).order.state,
    /** Stores the decision of an operator; an instruction that follows from it has this id. */
    decide: async (escrowId: string, decision: Decision, instructionId = newInstructionId()) => {
      const nowMs = clock.nowMs();
      await execute({ kind: 'Decide', by: tester, escrowId, decision, instructionId, nowMs });
    },
    /** Closes an order as an operator does. */
    close: async (escrowId: string) => {
      await execute({ kind: 'CloseOrder', by: tester, escrowId, at: now() });
    },
    /** Takes a new notification about an order. */
    notify: async (escrowId: string) => {
      const { holdId } = await caseOf(escrowId);
      const eventId = `event ${newInstructionId()}`;
      await execute({ kind: 'TakeNotification', eventId, about: { holdId }, nowMs: clock.nowMs() });
    },
    /** Asserts that an order has this state, no open instruction, and is not in review. */
    assertSettled: async (escrowId: string, state: EscrowState) => {
      const { order, open, review } = await caseOf(escrowId);
      assert.deepEqual([order.state, open, review], [state, [], undefined]);
    },
    /** Returns the kinds of all instructions sent, in their order. */
    kindsSent: () => provider.instructions.map(({ kind }) => kind),
    /** Returns the provenance events of the artwork of an order. */
    provenance: async (escrowId: string) => {
      const { filingNo } = (await caseOf(escrowId)).order;
      const found = await execute({ kind: 'GetProvenance', filingNo });
      return found?.records.map(({ event }) => event) ?? [];
    },
    /** Advances the clock step by step, while recovery runs. */
    pass: async (ms: number) => {
      const untilMs = clock.monotonicMs() + ms;
      for (;;) {
        await quiet();
        const stepMs = Math.min(clock.nextDueMs() ?? ms, untilMs - clock.monotonicMs());
        if (clock.monotonicMs() >= untilMs) return;
        clock.advance(stepMs);
      }
    },
    /** Begins another instance on the same store. It recovers nothing until it is started, and is stopped after the test. */
    join: (over: Parameters<typeof begin>[0]) => {
      const joined = begin(over);
      test.after(async () => {
        joined.recovery.stop();
        await joined.reconciler.stop();
      });
      return joined;
    },
    /** Prepares a resolution and does not send it. */
    prepare: (resolution: 'RELEASE' | 'REFUND', escrowId: string) =>
      execute({ kind: 'PrepareResolution', resolution, escrowId, ...ordered() }),
    /** Stops the reconciler and starts another one on the same store, like a restart. */
    restart: async () => {
      await end();
      ({ reconciler, recovery } = begin());
      await recovery.start();
    },
  };
}

/** Opens a kit with an order that is FROZEN. */
export async function frozen(...[test, limits]: Parameters<typeof openKit>) {
  const kit = await openKit(test, limits);
  const escrowId = await kit.open();
  assert.equal(await kit.stateOf(escrowId), 'FROZEN');
  return { kit, escrowId };
}

/** Opens and releases an order. */
export async function released(kit: Kit): Promise<string> {
  const escrowId = await kit.open();
  await kit.resolve('RELEASE', escrowId);
  assert.equal(await kit.stateOf(escrowId), 'RELEASED');
  return escrowId;
}
