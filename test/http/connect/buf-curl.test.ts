import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { test } from 'node:test';
import { fromBinary } from '@bufbuild/protobuf';
import { ErrorInfoSchema } from '../../../gen/google/rpc/error_details_pb.ts';
import { fileArtwork } from '../../support/calls.ts';
import { fileScope } from '../../support/file-scope.ts';
import { artwork } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const buf = join(root, 'node_modules', '.bin', 'buf');
const service = await startService(fileScope);
const authorization = ['-H', `Authorization: Bearer ${await service.token()}`];
const withSchema = ['curl', '--schema', '.'];

/** Sends a message to a method of FilingService, as an operator would. buf takes the schema from the server. */
function bufCurl(words: readonly string[], method: string, message: string) {
  const { promise, resolve } = Promise.withResolvers<{ code: number; stdout: string; stderr: string }>();
  const url = `${service.internalUrl}/artseal.v1.FilingService/${method}`;
  execFile(buf, [...words, '-d', message, url], { cwd: root }, (error, stdout, stderr) => {
    resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr });
  });
  return promise;
}

for (const [name, words] of Object.entries({
  'Connect over HTTP/1.1, schema by grpc.reflection.v1': ['--reflect-protocol', 'grpc-v1'],
  'gRPC-Web over HTTP/1.1, schema by grpc.reflection.v1alpha': [
    ...['--protocol', 'grpcweb', '--reflect-protocol', 'grpc-v1alpha'],
  ],
})) {
  test(`buf curl files an artwork: ${name}`, async () => {
    const reflecting = ['curl', ...words, '--reflect-header', '*', ...authorization];
    const filed = await bufCurl(reflecting, 'CreateFiling', JSON.stringify(artwork));
    assert.equal(filed.code, 0, filed.stderr);
    assert.match(JSON.parse(filed.stdout).filingNo, /^AS-\d{4}-\d{6}$/);
  });
}

test('buf curl shows the code and the reason of an error', async () => {
  const { code, stderr } = await bufCurl([...withSchema, ...authorization], 'GetFiling', '{"filingNo":"x"}');
  // buf's exit code is eight times the status code; not_found is 5.
  assert.equal(code, 5 * 8, stderr);
  const [info] = JSON.parse(stderr).details;
  assert.equal(info.type, 'google.rpc.ErrorInfo');
  assert.equal(fromBinary(ErrorInfoSchema, Buffer.from(info.value, 'base64')).reason, 'FILING_NOT_FOUND');
});

test('buf curl prints events as they happen, over gRPC', async (t) => {
  const gallery = await service.platform();
  const url = `${service.internalUrl}/artseal.v1.EventService/WatchEvents`;
  const words = ['--protocol', 'grpc', '--http2-prior-knowledge', ...authorization];
  const message = JSON.stringify({ platform: gallery.caller });
  const program = spawn(buf, [...withSchema, ...words, '-d', message, url], { cwd: root });
  t.after(() => program.kill('SIGKILL'));
  const printed = createInterface({ input: program.stdout })[Symbol.asyncIterator]();
  let text = '';
  const read = async () => {
    for (; ; text += (await printed.next()).value) {
      try {
        const response = JSON.parse(text);
        text = '';
        return response;
      } catch {}
    }
  };
  assert.deepEqual(await read(), {});
  const { filingNo } = (await fileArtwork(service, gallery)).json;
  const { event, platform, next } = await read();
  assert.deepEqual([event.filingNo, event.sequence, platform, next], [filingNo, '1', gallery.caller, '1']);
});
