import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { claimsVariable, unfinishedFiles } from './claims.ts';

/** `npm test`: runs all test files but the slow ones, in as many processes as there are files `part-*.ts`. */
const claims = mkdtempSync(join(tmpdir(), 'artseal-test-claims-'));
const words = ['--import', './src/packaging/module-resolution.ts', '--test', '--test-concurrency=3'];
const { status } = spawnSync(
  process.execPath,
  [...words, ...process.argv.slice(2), 'test/shared/part-*.ts'],
  {
    env: { ...process.env, [claimsVariable]: claims },
    stdio: 'inherit',
  },
);
const unfinished = unfinishedFiles(claims);
rmSync(claims, { recursive: true });
for (const file of unfinished) process.stderr.write(`test/${file} did not run to its end\n`);
process.exitCode = unfinished.length > 0 ? 1 : (status ?? 1);
