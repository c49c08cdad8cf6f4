import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClient } from '@connectrpc/connect';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { fileScope } from '../../support/file-scope.ts';
import { stripeSettings } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { services } from '../../support/services.ts';
import { openTestProvider } from '../../support/simulator.ts';
import { typedError } from '../../support/typed-clients.ts';

/** A provider that needs registered parties, so that every RPC is served. */
const service = await startService(fileScope, {
  provider: openTestProvider(fileScope),
  env: stripeSettings,
});
type Call = (request: object) => Promise<unknown>;

const transport = createTypedTransport(service.internalUrl, await service.token(true));
const methods = services
  .flatMap((described) => described.methods)
  .filter((method) => method.methodKind === 'unary');

/** test/domain/token.test.ts has the rules of a reason, paging.test.ts those of a page. */
for (const [field, wrong, rule, fewest] of [
  ['reason', 'a\nb', /(^|; )reason must have no control characters/, 20],
  ['pageSize', 101, /(^|; )pageSize must be 1 to 100/, 10],
  ['pageToken', 'x', /(^|; )pageToken must be a nextPageToken/, 12],
  ['since', '2026-11-21T12:00:00', /(^|; )since must be RFC 3339/, 4],
  ['after', -1n, /(^|; )after must be an integer from 0/, 2],
] as const) {
  test(`every RPC with the field ${field} rejects a wrong one`, async () => {
    const taking = methods.filter(({ input }) => input.fields.some(({ jsonName }) => jsonName === field));
    assert.ok(taking.length >= fewest, `${taking.length} RPCs`);
    for (const { parent, localName } of taking) {
      const client = createClient(parent, transport) as Record<string, Call>;
      const call = client[localName] ?? assert.fail(localName);
      const { message } = await typedError(call({ [field]: wrong }), 'VALIDATION_FAILED');
      assert.match(message, rule, localName);
    }
  });
}
