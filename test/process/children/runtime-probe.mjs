/**
 * Loaded by Node into every process that a test starts, before the program: `artseal serve` writes its process id into
 * the folder PROBE_FOLDER, and the bytes to which V8 limits its heap.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { getHeapStatistics } from 'node:v8';

const write = (name, value) => writeFileSync(join(process.env.PROBE_FOLDER, name), String(value));

const isServe = process.argv[2] === 'serve';
if (isServe) {
  write('pid', process.pid);
  write('heap-limit', getHeapStatistics().heap_size_limit);
}
