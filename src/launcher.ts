#!/usr/bin/env node
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { runtimePackages, thisMachine } from './packaging/pinned-runtime.ts';

// The command of the npm package: started with any Node that `engines` of package.json allows, it runs the service on one that
// the service can run on.

const oldest = '26.5.1';

const isNewEnough = process.versions.node.localeCompare(oldest, 'en', { numeric: true }) >= 0;
if (isNewEnough) await import('./main.ts');
else runOn(findRuntime());

/** The program of the runtime that was installed with this package; undefined if it was not. */
function findRuntime(): string | undefined {
  const runtime = runtimePackages[thisMachine];
  if (runtime === undefined) return undefined;
  try {
    const manifest = createRequire(import.meta.url).resolve(`${runtime.name}/package.json`);
    return join(dirname(manifest), runtime.program);
  } catch {
    return undefined;
  }
}

/** Runs the command anew on this runtime, in the place of this process where the system can do that. */
function runOn(program: string | undefined): void {
  if (program === undefined) {
    fail(
      `it runs on Node ${oldest} and newer, not on ${process.version}, and the optional packages that bring one are not ` +
        'installed: install artseal without --omit=optional.',
    );
  } else if (process.platform === 'win32') {
    process.exitCode = spawnSync(program, process.argv.slice(1), { stdio: 'inherit' }).status ?? 1;
  } else if (process.execve === undefined) {
    fail(`it starts with Node 22.15 or newer, not with ${process.version}: install a newer Node.`);
  } else {
    process.execve(program, [program, ...process.argv.slice(1)]);
  }
}

function fail(message: string): void {
  process.stderr.write(`artseal: ${message}\n`);
  process.exitCode = 1;
}
