/** A service that answers each message of its parent with the bytes that are alive in and beside its heap. */
import pino from 'pino';
import { startApp } from '../../../src/app.ts';
import { readConfig } from '../../../src/config.ts';

const { internalAddress } = await startApp(readConfig(process.env), pino({ level: 'silent' }));
process.on('message', () => {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  process.send?.(heapUsed + external);
});
process.on('disconnect', () => process.exit());
process.send?.(internalAddress);
