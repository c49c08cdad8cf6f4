import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { claimsVariable } from './claims.ts';

/** `npm test`: runs all test files but the slow ones, in as many processes as there are files `part-*.ts`. */
const claims = mkdtempSync(join(tmpdir(), 'artseal-test-claims-'));
const words = ['--import', './src/packaging/module-resolution.ts', '--test', '--test-concurrency=3'];
const { status } = spawnSync(process.execPath, [...words, 'test/shared/part-*.ts'], {
  env: { ...process.env, [claimsVariable]: claims },
  stdio: 'inherit',
});
rmSync(claims, { recursive: true });
process.exitCode = status ?? 1;
