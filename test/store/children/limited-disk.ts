/**
 * Files artworks while the files of this process may not grow, and again when they may. Prints what happened as
 * JSON. SIGXFSZ must be ignored, and `prlimit` must be there.
 */
import { spawnSync } from 'node:child_process';
import { ApiError } from '../../../src/domain/reason.ts';
import { createSqliteStore } from '../../../src/store/sqlite/engine.ts';
import { perform } from '../../../src/store/store.ts';
import { addPlatform, anyFiling, nowS, sandbox, toFile } from '../promises/fixtures.ts';

function allowFileBytes(limit: string): void {
  const { status, stderr } = spawnSync('prlimit', ['--pid', String(process.pid), `--fsize=${limit}:`]);
  if (status !== 0) throw new Error(`prlimit: ${stderr}`);
}

const [dataDir = ''] = process.argv.slice(2);
const store = createSqliteStore({ dataDir, ...sandbox });
const by = await addPlatform(store, 'gallery');

async function file(nonce: string): Promise<string> {
  const quota = { callerId: by.callerId, month: '2026-11', limit: undefined, take: true };
  const admission = { nowS, nonce: { keyId: by.id, nonce }, quota };
  try {
    const { outcome } = await store.execute({ admission, effect: toFile(by) });
    return outcome.kind === 'DONE' ? outcome.result.filingNo : outcome.kind;
  } catch (error) {
    return error instanceof ApiError ? error.reason : String(error);
  }
}

const outcomes = [await file('a')];
allowFileBytes('0');
outcomes.push(await file('b'), await file('c'));
const whileFull = (
  await perform(store, { kind: 'ListFilings', filter: anyFiling, page: { from: undefined, size: 10 } })
).items.length;
allowFileBytes('unlimited');
outcomes.push(await file('b'), await file('a'));
const calls = await perform(store, { kind: 'CountCalls', callerId: by.callerId, month: '2026-11' });
await store.close();
process.stdout.write(JSON.stringify({ outcomes, whileFull, calls }));
