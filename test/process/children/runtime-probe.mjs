/**
 * Loaded by Node into every process that a test starts, before the program: `artseal serve` writes its process id into
 * the folder PROBE_FOLDER, and at SIGUSR2 the bytes that its young heap takes.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { getHeapSpaceStatistics } from 'node:v8';

/** Writes a file of the folder, whole from the moment that it is there. */
function tell(name, value) {
  const file = join(process.env.PROBE_FOLDER, name);
  writeFileSync(`${file}.new`, String(value));
  renameSync(`${file}.new`, file);
}

const isServe = process.argv[2] === 'serve';
if (isServe) {
  tell('pid', process.pid);
  process.on('SIGUSR2', () => {
    const youngHeap = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space');
    tell('young-heap-bytes', youngHeap?.space_size);
  });
}
