/**
 * Files artworks while the files of this process may not grow, and again when they may. Prints what happened as
 * JSON. SIGXFSZ must be ignored, and `prlimit` must be there.
 */
import { spawnSync } from 'node:child_process';
import { Refusal } from '../../../src/domain/reason.ts';
import { createSqliteStore } from '../../../src/store/sqlite/engine.ts';
import { addPlatform, anyFiling, noon, painting, sandbox } from '../promises/fixtures.ts';

function allowFileBytes(limit: string): void {
  const { status, stderr } = spawnSync('prlimit', ['--pid', String(process.pid), `--fsize=${limit}:`]);
  if (status !== 0) throw new Error(`prlimit: ${stderr}`);
}

const [dataDir = ''] = process.argv.slice(2);
const store = createSqliteStore({ dataDir, ...sandbox });
const by = await addPlatform(store, 'gallery');
await store.durable();

const claim = (nonce: string) => store.admission.claimNonce({ keyId: by.id, nonce, nowS: 1_790_000_000 });
async function file(nonce: string): Promise<string> {
  try {
    const [{ filingNo }, claimed] = await Promise.all([
      store.filings.file(painting, noon, by),
      claim(nonce),
      store.admission.countCall(by.callerId, '2026-11'),
    ]);
    await store.durable();
    return `${filingNo} ${claimed}`;
  } catch (error) {
    return error instanceof Refusal ? error.reason : String(error);
  }
}

const outcomes = [await file('a')];
allowFileBytes('0');
outcomes.push(await file('b'), await file('c'));
const whileFull = (await store.filings.list(anyFiling, { from: undefined, size: 10 })).items.length;
allowFileBytes('unlimited');
outcomes.push(await file('b'), await file('a'));
const calls = await store.admission.callsIn(by.callerId, '2026-11');
await store.close();
process.stdout.write(JSON.stringify({ outcomes, whileFull, calls }));
