/** A service that answers each message of its parent with its memory, in bytes. */
import { BroadcastChannel } from 'node:worker_threads';
import { startApp } from '../../src/app/app.ts';
import { readConfig } from '../../src/config/config.ts';
import { silentLog } from '../../src/lib/log.ts';
import { weighHeap, weighingChannel } from './weigh-heap.ts';

const channel = new BroadcastChannel(weighingChannel);
const { publicAddress, internalAddress } = await startApp(readConfig(process.env), silentLog);
channel.onmessage = ({ data: heldInThread }: { data: number }) => {
  const weight = { held: weighHeap(), heldInThread, resident: process.memoryUsage.rss() };
  process.send?.({ ...weight, peak: process.resourceUsage().maxRSS * 1_024 });
};
process.on('message', () => channel.postMessage('weigh'));
process.on('disconnect', () => process.exit());
process.send?.({ publicAddress, internalAddress });
