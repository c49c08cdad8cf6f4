/**
 * Opens the store of each folder at about the same moment as its siblings do, registers a platform and files artworks;
 * prints a line for each number that it got.
 * Words: name of the platform, how many filings in each folder, when to begin in Unix milliseconds, folders.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError } from '../../../src/domain/reason.ts';
import { createSqliteStore } from '../../../src/store/sqlite/engine.ts';
import { perform } from '../../../src/store/store.ts';
import { addPlatform, sandbox, toFile } from '../promises/fixtures.ts';

/** A store that is busy with others may refuse; then it has stored nothing and is asked again. */
async function untilAvailable<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof ApiError && error.reason === 'UNAVAILABLE')) throw error;
    }
  }
}

const [name = '', count = '0', beginMs = '0', ...folders] = process.argv.slice(2);
for (const [place, dataDir] of folders.entries()) {
  await sleep(Math.max(0, Number(beginMs) + place * 40 - Date.now()));
  const store = createSqliteStore({ dataDir, ...sandbox });
  const by = await untilAvailable(() => addPlatform(store, name));
  for (let filed = 0; filed < Number(count); filed += 1) {
    const { filingNo } = await untilAvailable(() => perform(store, toFile(by)));
    process.stdout.write(`${place} ${filingNo}\n`);
  }
  await store.close();
}
