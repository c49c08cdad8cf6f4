import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Key_Tier, Token_Scope } from '../../gen/artseal/v1/admin_pb.ts';
import { connect } from '../../src/cli/connection.ts';
import { createTypedTransport } from '../../src/client/typed.ts';
import { fileScope } from '../support/file-scope.ts';
import { startService } from '../support/service.ts';
import { send } from '../support/signed-request.ts';
import { typedClients, typedError } from '../support/typed-clients.ts';

// A call with a credential follows as soon as the change of the credential returns, over the connection of commands. The store
// has its own thread, as in a server.

const [keys, suspensions, tokens] = [1_000, 200, 200];
/** How many pairs run at the same time: their changes share commits. */
const lanes = 4;

const service = await startService(fileScope, { isStoreInThisThread: false });
const { transport, close } = await connect(undefined, { ARTSEAL_DATA_DIR: service.dataDir });
fileScope.after(close);
const { admin } = typedClients(transport);

/** Runs pairs of a change and a call. Returns the results of the calls, with how often each occurred. */
async function countsOf(pairs: number, runPair: (pair: number) => Promise<string>) {
  const counts: Record<string, number> = {};
  let next = 0;
  const runLane = async () => {
    while (next < pairs) {
      next += 1;
      const result = await runPair(next);
      counts[result] = (counts[result] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: lanes }, runLane));
  return counts;
}

async function createKey(name: string) {
  const { key, apiSecret } = await admin.createKey({ name, tier: Key_Tier.TRIAL });
  assert.ok(key);
  return { ...key, apiSecret };
}

/** The error code of a call; an accepted caller gets FILING_NOT_FOUND. */
const codeOf = async (key: Awaited<ReturnType<typeof createKey>>): Promise<string> =>
  (await send(service.publicUrl, key, { target: '/api/v1/provenance/AS-2026-999999' })).json.code;

test('a key is accepted when the call that creates it returns, each time', async () => {
  const counts = await countsOf(keys, async (pair) => codeOf(await createKey(`created ${pair}`)));
  assert.deepEqual(counts, { FILING_NOT_FOUND: keys });
});

test('a key is rejected when the call that suspends it returns, and accepted when it is resumed, each time', async () => {
  const counts = await countsOf(suspensions, async (pair) => {
    const key = await createKey(`suspended ${pair}`);
    const codes = [await codeOf(key)];
    for (const method of ['suspendKey', 'resumeKey'] as const) {
      await admin[method]({ keyId: key.keyId });
      codes.push(await codeOf(key));
    }
    return codes.join(' ');
  });
  assert.deepEqual(counts, { 'FILING_NOT_FOUND KEY_SUSPENDED FILING_NOT_FOUND': suspensions });
});

test('a token is accepted when the call that creates it returns, until that which revokes it returns, each time', async () => {
  const counts = await countsOf(tokens, async (pair) => {
    const { token, text } = await admin.createToken({ name: `token ${pair}`, scopes: [Token_Scope.READ] });
    const { filings } = typedClients(createTypedTransport(service.internalUrl, text));
    await filings.listFilings({});
    await admin.revokeToken({ tokenId: token?.tokenId ?? '' });
    await typedError(filings.listFilings({}), 'AUTH_HEADER_INVALID');
    return 'accepted, then rejected';
  });
  assert.deepEqual(counts, { 'accepted, then rejected': tokens });
});
