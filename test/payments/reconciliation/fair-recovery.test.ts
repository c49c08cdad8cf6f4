import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { StoredKey } from '../../../src/store/caller-commands.ts';
import { type Kit, kitLimits, openKit } from './kit.ts';

/** How long after its first attempt failed an order may wait for the next, whatever becomes of those of others. */
const fairMs = 2_000;

/** Opens a kit whose provider does not respond to look-ups of chosen orders. */
async function openSilent(t: TestContext, slots = { atOnce: 8, atOncePerCaller: 4, keptForOthers: 4 }) {
  const kit = await openKit(t, { freezeDeadlineMs: Number.MAX_SAFE_INTEGER, ...slots });
  const silent = new Set<string>();
  kit.provider.treatLookUps(({ escrowId }) => ({ kind: silent.has(escrowId) ? 'SILENT' : 'NONE' }));
  return {
    kit,
    /** Opens orders that are frozen, but whose answers were lost and which no question is answered about. */
    openSilent: async (platform: StoredKey, count: number) => {
      kit.provider.treat({ FREEZE: 'ANSWER_LOST' });
      for (let opened = 0; opened < count; opened += 1) silent.add(await kit.open(platform));
    },
    /** Has questions about an order left without an answer. */
    silence: (escrowId: string) => silent.add(escrowId),
  };
}

/** Opens an order whose FREEZE was not answered, and sees it recovered in time. */
async function assertRecovered(kit: Kit, platform: StoredKey): Promise<void> {
  kit.provider.treat({ FREEZE: 'ANSWER_LOST' });
  const escrowId = await kit.open(platform);
  assert.equal(await kit.stateOf(escrowId), 'UNPAID');
  await kit.pass(fairMs - 1);
  assert.equal(await kit.stateOf(escrowId), 'FROZEN', `${platform.caller} waits for others`);
}

test('orders of several platforms without a response do not delay an order of another one', async (t) => {
  const { kit, openSilent: open } = await openSilent(t);
  const fair = await kit.addPlatform('fair');
  for (let count = 0; count < 6; count += 1) await open(await kit.addPlatform(`silent ${count}`), 5);
  for (let count = 0; count < 3; count += 1) {
    await assertRecovered(kit, fair);
    await kit.pass(1_700);
  }
});

test('an order that has not failed does not wait for orders that have, of any platform', async (t) => {
  const { kit, openSilent: open } = await openSilent(t);
  const sound = await kit.open();
  await open(kit.platform, 20);
  await kit.pass(3_000);
  kit.provider.lapse(sound);
  await kit.notify(sound);
  await kit.pass(kitLimits.pollMs);
  assert.equal(await kit.stateOf(sound), 'CLOSED');
});

test('orders that notifications make due take only their share, and each gets its turn', async (t) => {
  const { kit, silence } = await openSilent(t);
  const fair = await kit.addPlatform('fair');
  const noticed: string[] = [];
  for (let count = 0; count < 20; count += 1) noticed.push(await kit.open());
  const other = await kit.open(fair);
  noticed.forEach(silence);
  kit.provider.lapse(other);
  for (const escrowId of [...noticed, other]) await kit.notify(escrowId);
  await kit.pass(fairMs);
  assert.equal(await kit.stateOf(other), 'CLOSED');
  await kit.pass(20 * kitLimits.answerTimeoutMs);
  const asked = new Set(kit.provider.lookUps.map(({ escrowId }) => escrowId));
  assert.deepEqual(
    [...noticed, other].filter((escrowId) => !asked.has(escrowId)),
    [],
  );
});

test('callers take turns if there are fewer slots than callers with due orders', async (t) => {
  const slots = { atOnce: 2, atOncePerCaller: 1, keptForOthers: 0 };
  const { kit, openSilent: open } = await openSilent(t, slots);
  for (const platform of [kit.platform, await kit.addPlatform('silent')]) await open(platform, 5);
  const escrowId = await kit.open(await kit.addPlatform('last'));
  assert.equal(await kit.stateOf(escrowId), 'UNPAID');
  await kit.pass(3 * kitLimits.answerTimeoutMs);
  assert.equal(await kit.stateOf(escrowId), 'FROZEN');
});
