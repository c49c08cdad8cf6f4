import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { runtimeFlags } from '../src/packaging/runtime.ts';
import { installed } from '../test/support/installed.ts';
import { type Credentials, writeCredentials } from './credentials.ts';
import { ownProject, type Server, startProcess, startService } from './servers.ts';

/** Whether the server in Go can be built. Its driver is C. */
const canBuildGo = ['go', 'gcc'].every((program) => installed(program) !== undefined);

/** The hand-written servers of the public API. `go` takes part if it can be built. */
export const publicYardsticks: readonly string[] = ['floor', 'fastify', ...(canBuildGo ? ['go'] : [])];

/** What to say of the server that cannot take part; empty if all can. */
export const missingYardsticks: readonly string[] = canBuildGo
  ? []
  : ['Go or gcc is not installed: the server go does not take part.'];

/**
 * Starts a server of this folder, which accepts these credentials. It is a file of that name, on the runtime of the service
 * with the flags that it gives itself; or `go`, which is built first. It takes a data folder, and prints a line with
 * `ready public=http://127.0.0.1:PORT`, or `internal=`, once it accepts connections.
 */
export async function startYardstick(
  name: string,
  dataDir: string,
  credentials: Credentials,
): Promise<Server> {
  mkdirSync(dataDir, { recursive: true });
  writeCredentials(dataDir, credentials);
  const command =
    name === 'go'
      ? [await buildGo(dataDir), dataDir, join(import.meta.dirname, 'tables.sql')]
      : [process.execPath, ...runtimeFlags, join(import.meta.dirname, `${name}.ts`), dataDir];
  const start = { command, cwd: process.cwd(), env: process.env, dataDir };
  return { ...(await startProcess(name, start)), credentials };
}

/** Builds the server in Go into a folder. Returns its path. */
async function buildGo(dir: string): Promise<string> {
  const program = join(dir, 'go-server');
  const cwd = join(import.meta.dirname, 'go');
  await promisify(execFile)('go', ['build', '-buildvcs=false', '-o', program, '.'], { cwd });
  return program;
}

/** Starts the service and hand-written servers with its credentials, each in a folder of its own. */
export async function startPublicServers(dir: string, yardsticks: readonly string[]): Promise<Server[]> {
  const service = await startService('service', ownProject, join(dir, 'service'));
  const start = (name: string) => startYardstick(name, join(dir, name), service.credentials);
  return [service, ...(await Promise.all(yardsticks.map(start)))];
}
