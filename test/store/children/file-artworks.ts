/**
 * Opens the store of each folder at about the same moment as its siblings do, when no sibling uses it; registers a platform and
 * files artworks; prints a line for each number that it got.
 * Words: name of the platform, how many filings in each folder, when to begin in Unix milliseconds, folders.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createSqliteStore } from '../../../src/store/sqlite/engine.ts';
import { FolderInUse } from '../../../src/store/sqlite/folder-lock.ts';
import { perform, type Store } from '../../../src/store/store.ts';
import { addPlatform, sandbox, toFile } from '../promises/fixtures.ts';

function openInTurn(dataDir: string): Store {
  for (;;) {
    try {
      return createSqliteStore({ dataDir, ...sandbox });
    } catch (error) {
      if (!(error instanceof FolderInUse)) throw error;
    }
  }
}

const [name = '', count = '0', beginMs = '0', ...folders] = process.argv.slice(2);
for (const [place, dataDir] of folders.entries()) {
  await sleep(Math.max(0, Number(beginMs) + place * 40 - Date.now()));
  const store = openInTurn(dataDir);
  const by = await addPlatform(store, name);
  for (let filed = 0; filed < Number(count); filed += 1) {
    const { filingNo } = await perform(store, toFile(by));
    process.stdout.write(`${place} ${filingNo}\n`);
  }
  await store.close();
}
