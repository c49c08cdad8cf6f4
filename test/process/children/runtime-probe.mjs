/**
 * Loaded by Node into every process that a test starts, before the program: `artseal serve` writes its process id into
 * the folder PROBE_FOLDER, and at SIGUSR2 the bytes that its young heap takes when it is filled as far as it may grow.
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

/** How often the young heap is filled until it has grown as far as it may, and with how many objects. */
const fillings = 40;
const objects = 300_000;

/** Fills the young heap with objects that live as long as that takes; the bytes that it takes then. */
function fill() {
  const alive = Array.from({ length: objects }, (_, place) => ({ place }));
  const { space_size: bytes } = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space');
  return alive.length > 0 ? bytes : 0;
}

const isServe = process.argv[2] === 'serve';
if (isServe) {
  tell('pid', process.pid);
  process.on('SIGUSR2', () => {
    tell('young-heap-bytes', Math.max(...Array.from({ length: fillings }, fill)));
  });
}
