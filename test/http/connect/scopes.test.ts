import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:http2';
import { test } from 'node:test';
import type { DescMethod, DescService } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import { type CallOptions, type ConnectError, createClient, type Transport } from '@connectrpc/connect';
import { Escrow_Type } from '../../../gen/artseal/v1/escrow_pb.ts';
import { SessionService } from '../../../gen/artseal/v1/session_pb.ts';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { type Scope, scopes, type TokenTerms } from '../../../src/domain/token.ts';
import { tester } from '../../support/audit-log.ts';
import { fileArtwork, openEscrow } from '../../support/calls.ts';
import { fileScope } from '../../support/file-scope.ts';
import { artwork, escrowTerms } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { services } from '../../support/services.ts';
import { send } from '../../support/signed-request.ts';
import { tokenTerms } from '../../support/tokens.ts';
import { typedError } from '../../support/typed-clients.ts';

const service = await startService(fileScope);
const painting = { ...artwork, price: BigInt(artwork.price) };

async function tokenOf(over: Partial<TokenTerms>): Promise<string> {
  return (await service.issuance.issueToken(tokenTerms('ledger', over), tester)).token;
}

/**
 * The scope that writing calls of each service need, as docs/internal.md says. With `operate`, all calls need it. The calls of
 * SessionService need none.
 */
const documented: Readonly<Record<string, Scope | undefined>> = {
  'artseal.v1.FilingService': 'file',
  'artseal.v1.ProvenanceService': 'read',
  'artseal.v1.EvidenceService': 'link',
  'artseal.v1.EscrowService': 'escrow',
  'artseal.v1.EventService': 'read',
  'artseal.v1.WebhookService': 'webhook',
  'artseal.v1.AdminService': 'operate',
  'artseal.v1.ReviewService': 'operate',
  'artseal.v1.BackupService': 'operate',
  'artseal.v1.MaintenanceService': 'operate',
  'artseal.v1.AccessService': 'operate',
};

function scopeOf({ typeName }: DescService, { idempotency }: DescMethod): Scope {
  const ofService = documented[typeName] ?? assert.fail(`${typeName} is not documented.`);
  const isRead = idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  return isRead && ofService !== 'operate' ? 'read' : ofService;
}

type AnyCall = (request: object, options: CallOptions) => Promise<unknown> | AsyncIterable<unknown>;

/** The response of a call; the first message of a stream, which then ends. */
async function firstResponse(call: AnyCall): Promise<unknown> {
  const leaving = new AbortController();
  const called = call({}, { signal: leaving.signal });
  if (!(Symbol.asyncIterator in called)) return called;
  const { value } = await called[Symbol.asyncIterator]().next();
  leaving.abort();
  return value;
}

/** For each scope, the calls of a token with only this scope, and of one with all others. */
const transports = new Map<Scope, { readonly only: Transport; readonly others: Transport }>();
for (const scope of scopes) {
  const transportOf = async (granted: readonly Scope[]) =>
    createTypedTransport(service.internalUrl, await tokenOf({ scopes: granted }));
  const others = scopes.filter((other) => other !== scope);
  transports.set(scope, { only: await transportOf([scope]), others: await transportOf(others) });
}

test('every RPC needs its scope, and no other', async () => {
  assert.ok(services.length >= Object.keys(documented).length);
  for (const described of services) {
    if (described === SessionService) continue;
    const clients = new Map<Transport, Record<string, AnyCall>>();
    const clientOf = (transport: Transport) => {
      const client = clients.get(transport) ?? createClient(described, transport);
      clients.set(transport, client);
      return client;
    };
    for (const method of described.methods) {
      const needed = scopeOf(described, method);
      const { only, others } = transports.get(needed) ?? assert.fail(needed);
      const callWith = (transport: Transport): Promise<unknown> =>
        firstResponse(clientOf(transport)[method.localName] ?? assert.fail(method.localName));
      const { message } = await typedError(callWith(others), 'PERMISSION_DENIED');
      assert.equal(
        message,
        `${method.name} needs a token with the scope ${needed}; the operator issues one: ` +
          `artseal token create --name NAME --scopes ${needed}.`,
      );
      // With the scope it may be rejected for another reason.
      const answer = await callWith(only).catch((error: ConnectError) => error.message);
      assert.doesNotMatch(String(answer), /scope/, `${method.name} with ${needed}`);
    }
  }
});

test('a token without the scope is rejected before its message arrives', async (t) => {
  const session = connect(service.internalUrl);
  t.after(() => session.destroy());
  const call = session.request({
    ':method': 'POST',
    ':path': '/artseal.v1.AdminService/ImportParties',
    'content-type': 'application/proto',
    authorization: `Bearer ${await tokenOf({ scopes: ['read'] })}`,
  });
  const [head] = await once(call, 'response');
  assert.equal(head[':status'], 403);
});

test('a token for a platform files and reads only as that platform', async () => {
  const [gallery, other] = [await service.platform(), await service.platform()];
  const { filings, escrows, provenance } = await service.clients({ platform: gallery.caller });
  const { filingNo: others } = (await fileArtwork(service, other)).json;
  const { escrowId: othersOrder } = (await openEscrow(service, other, others)).json;

  const { filingNo } = await filings.createFiling(painting);
  assert.equal((await filings.getFiling({ filingNo })).filing?.caller, gallery.caller);
  const listed = await filings.listFilings({});
  assert.deepEqual(
    listed.filings.map((filing) => filing.filingNo),
    [filingNo],
  );
  const overRest = await send(service.publicUrl, gallery, { target: `/api/v1/filing/${filingNo}` });
  assert.equal(overRest.status, 200);

  await typedError(filings.getFiling({ filingNo: others }), 'FILING_NOT_FOUND');
  await typedError(escrows.getEscrow({ escrowId: othersOrder }), 'ESCROW_NOT_FOUND');
  await typedError(escrows.releaseEscrow({ escrowId: othersOrder }), 'ESCROW_NOT_FOUND');
  await typedError(escrows.refundEscrow({ escrowId: othersOrder }), 'ESCROW_NOT_FOUND');
  const terms = (no: string) => ({ ...escrowTerms(no), type: Escrow_Type.GUARANTEE, amount: 5n });
  await typedError(escrows.createEscrow(terms(others)), 'PERMISSION_DENIED');
  assert.equal((await provenance.getProvenance({ filingNo: others })).filingNo, others);

  const { escrowId } = await escrows.createEscrow(terms(filingNo));
  const order = (await escrows.getEscrow({ escrowId })).escrow;
  assert.equal(order?.caller, gallery.caller);
  assert.deepEqual((await escrows.listEscrows({})).escrows, [order]);
  await escrows.releaseEscrow({ escrowId });
});

test('calls with a token for a platform have no rate and no quota, and are not counted', async () => {
  const { caller, ...gallery } = await service.platform('TRIAL');
  const { filings } = await service.clients({ platform: caller });
  const calls = Array.from({ length: 30 }, () => filings.listFilings({}));
  assert.equal((await Promise.all(calls)).length, 30);
  const { admin } = await service.clients({ scopes: ['operate'] });
  assert.equal((await admin.getUsage({ caller })).calls, 0n);
  const { status } = await fileArtwork(service, { ...gallery });
  assert.equal(status, 200);
});
