/** A service that answers each message of its parent with what it weighs, in bytes. */
import pino from 'pino';
import { startApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';

const { publicAddress, internalAddress } = await startApp(readConfig(process.env), pino({ level: 'silent' }));
process.on('message', () => {
  globalThis.gc?.();
  // Memory beside the heap is let go of by what the first collection found.
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  process.send?.({ held: heapUsed + external, peak: process.resourceUsage().maxRSS * 1_024 });
});
process.on('disconnect', () => process.exit());
process.send?.({ publicAddress, internalAddress });
