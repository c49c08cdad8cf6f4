/** Opens the store of a folder, says so, and keeps it open until it is killed. Word: the folder. */
import { createSqliteStore } from '../../../src/store/sqlite/engine.ts';
import { addPlatform, fileOne, sandbox } from '../promises/fixtures.ts';

const [dataDir = ''] = process.argv.slice(2);
const store = createSqliteStore({ dataDir, ...sandbox });
await fileOne(store, await addPlatform(store, 'gallery'));
process.stdout.write('open\n');
setInterval(() => {}, 60_000);
