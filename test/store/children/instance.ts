/** Serves a database as an instance, and files until it is killed or loses the database. Prints each number that was answered,
 * and in the end why the database is lost. Words: URL, calls at a time. */
import { writeSync } from 'node:fs';
import { openPostgresStore } from '../../../src/store/postgres/store.ts';
import { perform } from '../../../src/store/store.ts';
import { instanceFacts, sandbox, toFile } from '../promises/fixtures.ts';

const [url = '', calls] = process.argv.slice(2);
const store = await openPostgresStore({ place: { url }, ...sandbox });
await perform(store, { kind: 'JoinInstances', facts: instanceFacts('child') });
writeSync(1, 'open\n');
void store.lost.then(({ message }) => {
  writeSync(1, `${message}\n`);
  process.exit(1);
});

async function file(): Promise<void> {
  for (;;) {
    const filed = await store
      .execute({ effect: toFile({ callerId: 1, caller: 'gallery' }) })
      .catch(() => undefined);
    if (filed?.outcome.kind === 'DONE') writeSync(1, `${filed.outcome.result.filingNo}\n`);
    else await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
for (let nth = 0; nth < Number(calls); nth += 1) void file();
