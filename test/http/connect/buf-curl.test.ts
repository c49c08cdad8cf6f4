import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { fileScope } from '../../support/file-scope.ts';
import { artwork } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const buf = join(root, 'node_modules', '.bin', 'buf');
const service = await startService(fileScope);
const authorization = ['-H', `Authorization: Bearer ${await service.token()}`];

for (const [name, words] of Object.entries({
  'Connect over HTTP/1.1, schema by grpc.reflection.v1': ['--reflect-protocol', 'grpc-v1'],
  'gRPC-Web over HTTP/1.1, schema by grpc.reflection.v1alpha': [
    ...['--protocol', 'grpcweb', '--reflect-protocol', 'grpc-v1alpha'],
  ],
})) {
  test(`buf curl files an artwork, as an operator would: ${name}`, async () => {
    const reflecting = ['curl', ...words, '--reflect-header', '*', ...authorization];
    const url = `${service.internalUrl}/artseal.v1.FilingService/CreateFiling`;
    const sent = [...reflecting, '-d', JSON.stringify(artwork), url];
    const { stdout } = await promisify(execFile)(buf, sent, { cwd: root });
    assert.match(JSON.parse(stdout).filingNo, /^AS-\d{4}-\d{6}$/);
  });
}
