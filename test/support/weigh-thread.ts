/** Preloaded into a weighed service: its threads report their live memory on request over the channel. */
import { BroadcastChannel, isMainThread } from 'node:worker_threads';
import { weighHeap, weighingChannel } from './weigh-heap.ts';

if (!isMainThread) {
  const channel = new BroadcastChannel(weighingChannel);
  channel.unref();
  channel.onmessage = () => channel.postMessage(weighHeap());
}
