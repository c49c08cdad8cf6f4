import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { DescMethod, DescService } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import { type ConnectError, createClient } from '@connectrpc/connect';
import { Escrow_Type, EscrowService } from '../../../gen/artseal/v1/escrow_pb.ts';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { type Scope, scopes, type TokenTerms } from '../../../src/domain/token.ts';
import { tester } from '../../support/audit-log.ts';
import { fileArtwork, openEscrow } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { fileScope } from '../../support/file-scope.ts';
import { artwork, escrowTerms } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { send } from '../../support/signed-request.ts';
import { tokenTerms } from '../../support/tokens.ts';
import { typedClients, typedRefusal } from '../../support/typed-clients.ts';
import { transports } from './transports.ts';

const clock = createManualClock();
const service = await startService(fileScope, { clock });
const painting = { ...artwork, price: BigInt(artwork.price) };

async function tokenOf(over: Partial<TokenTerms>): Promise<string> {
  return (await service.issuance.issueToken(tokenTerms('ledger', over), tester)).token;
}

async function clientsOf(over: Partial<TokenTerms>) {
  return typedClients(createTypedTransport(service.internalUrl, await tokenOf(over)));
}

/** What calls of each service need that write, as docs/internal.md says; all of AdminService needs it. */
const documented: Readonly<Record<string, Scope | undefined>> = {
  'artseal.v1.FilingService': 'file',
  'artseal.v1.ProvenanceService': 'read',
  'artseal.v1.EvidenceService': 'link',
  'artseal.v1.EscrowService': 'escrow',
  'artseal.v1.EventService': 'read',
  'artseal.v1.WebhookService': 'webhook',
  'artseal.v1.AdminService': 'operate',
};

/** Every service of the protos. */
async function servicesOfProtos(): Promise<DescService[]> {
  const folder = join(import.meta.dirname, '../../../gen/artseal/v1');
  const modules = await Promise.all(globSync(join(folder, '*_pb.ts')).map((file) => import(file)));
  return modules.flatMap((module) =>
    Object.values<Partial<DescService>>(module).filter(
      (value): value is DescService => value.kind === 'service',
    ),
  );
}

function scopeOf(schema: DescService, { idempotency }: DescMethod): Scope {
  const ofService = documented[schema.typeName] ?? assert.fail(`${schema.typeName} is not documented.`);
  const isRead = idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  return isRead && ofService !== 'operate' ? 'read' : ofService;
}

type AnyCall = (request: object) => Promise<unknown> | AsyncIterable<unknown>;

/** The answer of a call, the first where it is answered by a stream. */
async function firstAnswer(answered: ReturnType<AnyCall>): Promise<unknown> {
  if (!(Symbol.asyncIterator in answered)) return answered;
  for await (const answer of answered) return answer;
  return assert.fail('The stream is empty.');
}

const services = await servicesOfProtos();
/** For each scope, a token that has it alone, and one that has all others. */
const tokens = new Map<Scope, { readonly only: string; readonly others: string }>();
for (const scope of scopes) {
  const others = scopes.filter((other) => other !== scope);
  tokens.set(scope, { only: await tokenOf({ scopes: [scope] }), others: await tokenOf({ scopes: others }) });
}

for (const [protocol, transport] of Object.entries(transports)) {
  test(`every RPC is refused without its scope and let in with it, over ${protocol}`, async () => {
    assert.ok(services.length >= Object.keys(documented).length);
    for (const schema of services) {
      for (const method of schema.methods) {
        const needed = scopeOf(schema, method);
        const { only, others } = tokens.get(needed) ?? assert.fail(needed);
        const callWith = (token: string): Promise<unknown> => {
          const client: Record<string, AnyCall> = createClient(schema, transport(service.internalUrl, token));
          return firstAnswer(client[method.localName]?.({}) ?? assert.fail(method.localName));
        };
        const { message } = await typedRefusal(callWith(others), 'PERMISSION_DENIED');
        assert.equal(
          message,
          `${method.name} needs a token with the scope ${needed}; the operator issues one: ` +
            `artseal token create --name NAME --scopes ${needed}.`,
        );
        // Whatever it is refused for then, it is not for the scope.
        const answer = await callWith(only).catch((error: ConnectError) => error.message);
        assert.doesNotMatch(String(answer), /scope/, `${method.name} with ${needed}`);
      }
    }
  });
}

test('a token that nothing is granted to is let in to nothing', async () => {
  const { filings, admin } = await clientsOf({ scopes: [] });
  await typedRefusal(filings.listFilings({}), 'PERMISSION_DENIED');
  await typedRefusal(admin.listKeys({}), 'PERMISSION_DENIED');
});

test('a token for a platform files and reads as that platform alone', async () => {
  const [gallery, other] = [await service.platform(), await service.platform()];
  const { filings, escrows, provenance } = await clientsOf({ platform: gallery.caller });
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

  await typedRefusal(filings.getFiling({ filingNo: others }), 'FILING_NOT_FOUND');
  await typedRefusal(escrows.getEscrow({ escrowId: othersOrder }), 'ESCROW_NOT_FOUND');
  await typedRefusal(escrows.releaseEscrow({ escrowId: othersOrder }), 'ESCROW_NOT_FOUND');
  await typedRefusal(escrows.refundEscrow({ escrowId: othersOrder }), 'ESCROW_NOT_FOUND');
  const terms = (no: string) => ({ ...escrowTerms(no), type: Escrow_Type.GUARANTEE, amount: 5n });
  await typedRefusal(escrows.createEscrow(terms(others)), 'PERMISSION_DENIED');
  assert.equal((await provenance.getProvenance({ filingNo: others })).filingNo, others);

  const { escrowId } = await escrows.createEscrow(terms(filingNo));
  const order = (await escrows.getEscrow({ escrowId })).escrow;
  assert.equal(order?.caller, gallery.caller);
  assert.deepEqual((await escrows.listEscrows({})).escrows, [order]);
  await escrows.releaseEscrow({ escrowId });
});

test('a token for a platform has none of its rate and quota, and counts nothing', async () => {
  const { caller, ...gallery } = await service.platform('TRIAL');
  const { filings } = await clientsOf({ platform: caller });
  const calls = Array.from({ length: 30 }, () => filings.listFilings({}));
  assert.equal((await Promise.all(calls)).length, 30);
  const { admin } = await clientsOf({ scopes: ['operate'] });
  assert.equal((await admin.getUsage({ caller })).calls, 0n);
  const { status } = await fileArtwork(service, { ...gallery });
  assert.equal(status, 200);
});

test('a token for a platform is refused while that is suspended, whatever the protocol', async () => {
  const { caller } = await service.platform();
  const token = await tokenOf({ platform: caller });
  const { admin } = await clientsOf({ scopes: ['operate'] });
  const { escrows } = await clientsOf({});
  await admin.suspendPlatform({ caller });
  for (const transport of Object.values(transports)) {
    const refused = createClient(EscrowService, transport(service.internalUrl, token));
    await typedRefusal(refused.listEscrows({}), 'KEY_SUSPENDED');
  }
  await escrows.listEscrows({});
  await admin.resumePlatform({ caller });
  const again = createClient(EscrowService, createTypedTransport(service.internalUrl, token));
  assert.deepEqual((await again.listEscrows({})).escrows, []);
});

test('a call with a token is refused from the moment at which that ends', async () => {
  const expiresAtS = Math.floor(clock.nowMs() / 1000) + 3_600;
  const { filings } = await clientsOf({ expiresAtS });
  clock.advance(expiresAtS * 1000 - 1 - clock.nowMs());
  await filings.listFilings({});
  clock.advance(1);
  const { message } = await typedRefusal(filings.listFilings({}), 'AUTH_HEADER_INVALID');
  assert.match(message, /neither revoked nor expired/);
});

test('the log line of a call names the token, and never its text', async () => {
  const { stored, token } = await service.issuance.issueToken(tokenTerms('ledger'), tester);
  const { filings } = typedClients(createTypedTransport(service.internalUrl, token));
  await filings.listFilings({});
  await service.close();
  const lines = service.logLines.map((line) => JSON.parse(line));
  const [line] = lines.filter(({ tokenId }) => tokenId === stored.tokenId);
  assert.deepEqual([line?.caller, line?.operation], ['ledger', 'artseal.v1.FilingService/ListFilings']);
  assert.ok(!service.logLines.join('').includes(token));
});
