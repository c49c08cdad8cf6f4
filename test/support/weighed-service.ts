import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { runtimeFlags } from '../../src/packaging/runtime.ts';
import { anyAddresses } from './free-address.ts';
import { issueInto } from './issued.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** What a service weighs, in bytes. */
export interface Weight {
  /** What is alive in the heap of its main thread and in the buffers and strings beside it. */
  readonly held: number;
  /** The same of the thread of its store. */
  readonly heldInThread: number;
  /** Its resident memory now. */
  readonly resident: number;
  /** Its resident memory at the highest since it started. */
  readonly peak: number;
}

/** Starts a service in a process of its own, which can be weighed; ended after the tests. */
export async function startWeighedService(scope: Pick<TestContext, 'after'>) {
  const dataDir = temporaryFolder(scope);
  const { platforms, token } = await issueInto(dataDir, 1);
  const service = fork(join(import.meta.dirname, 'serve-and-weigh.ts'), {
    execArgv: [...runtimeFlags, '--expose-gc', `--import=${join(import.meta.dirname, 'weigh-thread.ts')}`],
    env: {
      ...process.env,
      ARTSEAL_DATA_DIR: dataDir,
      ...anyAddresses,
    },
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
