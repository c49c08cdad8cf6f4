import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { runtimeFlags } from '../../src/packaging/runtime.ts';
import { anyAddresses } from './free-address.ts';
import { issueInto } from './issued.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** The memory of a service, in bytes. */
export interface Weight {
  /** Live memory of its main thread: heap, buffers and strings. */
  readonly held: number;
  /** Live memory of the store's thread. */
  readonly heldInThread: number;
  /** Resident memory now. */
  readonly resident: number;
  /** The highest resident memory since the start. */
  readonly peak: number;
}

/** Starts a service in a process of its own that reports its memory. The process is killed after the tests. */
export async function startWeighedService(scope: Pick<TestContext, 'after'>) {
  const dataDir = temporaryFolder(scope);
  const { platforms, token } = await issueInto(dataDir, 1);
  const service = fork(join(import.meta.dirname, 'serve-and-weigh.ts'), {
    execArgv: [...runtimeFlags, '--expose-gc', `--import=${join(import.meta.dirname, 'weigh-thread.ts')}`],
    env: { ...process.env, ARTSEAL_DATA_DIR: dataDir, ...anyAddresses },
  });
  scope.after(() => service.kill('SIGKILL'));
  const message = async () => (await once(service, 'message'))[0];
  const { publicAddress, internalAddress } = await message();
  return {
    publicUrl: `http://${publicAddress}`,
    internalUrl: `http://${internalAddress}`,
    platforms,
    token,
    weigh: (): Promise<Weight> => {
      const weighed = message();
      service.send('weigh');
      return weighed;
    },
  };
}
