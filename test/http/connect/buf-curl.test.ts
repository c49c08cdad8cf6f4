import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { fromBinary } from '@bufbuild/protobuf';
import { ErrorInfoSchema } from '../../../gen/google/rpc/error_details_pb.ts';
import { artwork } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const buf = join(root, 'node_modules', '.bin', 'buf');

interface CurlResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs buf curl as an operator would, with the schema in the folder or with what the service says of itself. */
function bufCurl(words: readonly string[], schema = ['--schema', '.']): Promise<CurlResult> {
  const { promise, resolve } = Promise.withResolvers<CurlResult>();
  execFile(buf, ['curl', ...schema, ...words], { cwd: root }, (error, stdout, stderr) => {
    resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr });
  });
  return promise;
}

/** The reason in the ErrorInfo of an error as buf curl prints it. */
function reasonIn(stderr: string): string {
  const [info] = JSON.parse(stderr).details;
  assert.equal(info.type, 'google.rpc.ErrorInfo');
  return fromBinary(ErrorInfoSchema, Buffer.from(info.value, 'base64')).reason;
}

const ways: Record<string, readonly string[]> = {
  'Connect over HTTP/1.1': ['--protocol', 'connect'],
  'Connect over HTTP/2': ['--protocol', 'connect', '--http2-prior-knowledge'],
  'gRPC over HTTP/2': ['--protocol', 'grpc', '--http2-prior-knowledge'],
  'gRPC-Web over HTTP/1.1': ['--protocol', 'grpcweb'],
  'gRPC-Web over HTTP/2': ['--protocol', 'grpcweb', '--http2-prior-knowledge'],
};

for (const [name, words] of Object.entries(ways)) {
  test(`buf curl is answered and refused: ${name}`, async (t) => {
    const service = await startService(t);
    const authorization = ['-H', `Authorization: Bearer ${await service.token()}`];
    const url = (method: string) => `${service.internalUrl}/artseal.v1.FilingService/${method}`;
    const [filed, refused, unauthenticated] = await Promise.all([
      bufCurl([...words, ...authorization, '-d', JSON.stringify(artwork), url('CreateFiling')]),
      bufCurl([...words, ...authorization, '-d', '{"filingNo":"AS-1999-000001"}', url('GetFiling')]),
      bufCurl([...words, '-d', '{}', url('ListFilings')]),
    ]);
    assert.equal(filed.code, 0, filed.stderr);
    assert.match(JSON.parse(filed.stdout).filingNo, /^AS-\d{4}-000001$/);
    // buf's exit code is the status code times eight: not_found is 5, unauthenticated 16.
    assert.equal(refused.code, 5 * 8, refused.stderr);
    assert.equal(reasonIn(refused.stderr), 'FILING_NOT_FOUND');
    assert.equal(unauthenticated.code, 16 * 8, unauthenticated.stderr);
    assert.equal(reasonIn(unauthenticated.stderr), 'AUTH_HEADER_MISSING');
  });
}

for (const version of ['grpc-v1', 'grpc-v1alpha']) {
  test(`buf curl needs no schema, since the service describes itself: ${version}`, async (t) => {
    const service = await startService(t);
    const reflecting = ['--reflect-protocol', version, '--reflect-header', '*'];
    const authorization = ['-H', `Authorization: Bearer ${await service.token()}`];
    const url = `${service.internalUrl}/artseal.v1.FilingService/CreateFiling`;
    const filed = await bufCurl([...authorization, '-d', JSON.stringify(artwork), url], reflecting);
    assert.equal(filed.code, 0, filed.stderr);
    assert.match(JSON.parse(filed.stdout).filingNo, /^AS-\d{4}-000001$/);
  });
}
