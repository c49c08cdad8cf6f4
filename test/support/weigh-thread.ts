/** Preloaded into a weighed service: has its threads tell what is alive in them, when they are asked over the channel. */
import { BroadcastChannel, isMainThread } from 'node:worker_threads';
import { weighHeap, weighingChannel } from './weigh-heap.ts';

if (!isMainThread) {
  const channel = new BroadcastChannel(weighingChannel);
  channel.unref();
  channel.onmessage = () => channel.postMessage(weighHeap());
}
