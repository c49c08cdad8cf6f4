/** Sends many requests over one reflection stream that stays open, and posts how many more promises are in memory. */
import { queryObjects } from 'node:v8';
import { parentPort, workerData } from 'node:worker_threads';
import { create } from '@bufbuild/protobuf';
import type { HandlerContext } from '@connectrpc/connect';
import { ServerReflectionRequestSchema } from '../../../../gen/grpc/reflection/v1/reflection_pb.ts';
import { createReflection } from '../../../../src/http/connect/standard-services.ts';

const request = create(ServerReflectionRequestSchema, {
  messageRequest: { case: 'listServices', value: '' },
});
async function* requests() {
  for (;;) yield request;
}
const { signal } = new AbortController();
const info = createReflection([], [], new AbortController().signal);
const answers = info(requests(), { signal } as HandlerContext);
const held = () => queryObjects(Promise, { format: 'count' });
const before = held();
for (let answered = 0; answered < workerData; answered += 1) await answers.next();
parentPort?.postMessage(held() - before);
