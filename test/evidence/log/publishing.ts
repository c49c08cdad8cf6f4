import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { createCalendar } from '../../../src/domain/calendar.ts';
import { type Checkpoint, readCheckpoint } from '../../../src/evidence/formats/checkpoint.ts';
import { isSignedBy } from '../../../src/evidence/log/agreement.ts';
import { perform } from '../../../src/store/store.ts';
import { createManualClock, type ManualClock } from '../../support/clock.ts';
import { artwork } from '../../support/samples.ts';
import { type ServiceOptions, startService } from '../../support/service.ts';

/** A service that publishes its log when its clock is advanced. */
export type Publishing = Awaited<ReturnType<typeof startPublishing>>;

/** Starts a service whose clock stands still. */
export async function startPublishing(
  t: Pick<TestContext, 'after'>,
  { clock = createManualClock(), ...options }: ServiceOptions & { clock?: ManualClock } = {},
) {
  const service = await startService(t, { ...options, clock });
  const { store, publication } = service;
  const by = async () => {
    const name = 'gallery';
    const known = await perform(store, { kind: 'FindPlatform', name });
    if (known !== undefined) return known;
    await service.issuance.issueKey(
      { name, tier: 'ENTERPRISE', monthlyQuota: undefined, unlimited: true },
      { actor: 'test', atS: Math.floor(clock.nowMs() / 1000), reason: undefined },
    );
    return (await perform(store, { kind: 'FindPlatform', name })) ?? assert.fail();
  };
  return {
    ...service,
    clock,
    /** Files artworks. Returns the leaf index of the last one. */
    file: async (count = 1): Promise<number> => {
      const [filer, atMs] = [await by(), clock.nowMs()];
      const at = { atMs, timestamp: createCalendar('UTC').timestamp(atMs) };
      const price = BigInt(artwork.price);
      const filed = Array.from({ length: count }, () =>
        perform(store, { kind: 'FileArtwork', artwork: { ...artwork, price }, at, by: filer }),
      );
      await Promise.all(filed);
      return (await perform(store, { kind: 'GetTree' })).size - 1;
    },
    /** Advances the clock until a checkpoint covers a leaf. */
    published: async (leafIndex: number): Promise<void> => {
      const covered = publication.covering(leafIndex, 600_000);
      clock.advance(1_000);
      assert.ok(await covered);
    },
  };
}

/** The note in the file of a data folder. */
export const keptIn = (dataDir: string): string => readFileSync(join(dataDir, 'log-checkpoint'), 'utf8');

/** Reads a checkpoint that each of these verifier keys signed. */
export function signedBy(note: string, vkeys: readonly string[]): Checkpoint {
  for (const vkey of vkeys) assert.ok(isSignedBy(note, [vkey]));
  return readCheckpoint(note, 'the checkpoint');
}
