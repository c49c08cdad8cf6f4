#!/usr/bin/env node
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { runtimePackages, thisMachine } from './packaging/pinned-runtime.ts';

// The command of the npm package. It starts on any Node that `engines` of package.json allows. If that Node is too old for
// the service, it runs the service on the Node that was installed with the package.

const oldest = '26.5.1';

const isNewEnough = process.versions.node.localeCompare(oldest, 'en', { numeric: true }) >= 0;
if (isNewEnough) await import('./main.ts');
else runOn(findRuntime());

/** The path of the Node that was installed with this package; undefined if none was. */
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

/** Runs the command on this Node: in place of this process, or as a child on Windows. */
function runOn(program: string | undefined): void {
  if (program === undefined) {
    fail(
      `needs Node ${oldest} or newer, not ${process.version}, and the optional package with a newer one is not ` +
        'installed: install artseal without --omit=optional.',
    );
  } else if (process.platform === 'win32') {
    process.exitCode = spawnSync(program, process.argv.slice(1), { stdio: 'inherit' }).status ?? 1;
  } else if (process.execve === undefined) {
    fail(`needs Node 22.15 or newer to start, not ${process.version}: install a newer Node.`);
  } else {
    process.execve(program, [program, ...process.argv.slice(1)]);
  }
}

function fail(message: string): void {
  process.stderr.write(`artseal: ${message}\n`);
  process.exitCode = 1;
}
