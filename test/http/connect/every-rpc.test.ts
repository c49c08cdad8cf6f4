import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { type DescMethod, type DescService, type Message, toJson } from '@bufbuild/protobuf';
import { type CallOptions, createClient, type Transport } from '@connectrpc/connect';
import { Escrow_Type } from '../../../gen/artseal/v1/escrow_pb.ts';
import { MaintenanceService } from '../../../gen/artseal/v1/maintenance_pb.ts';
import { Delivery_Status } from '../../../gen/artseal/v1/webhook_pb.ts';
import { Health } from '../../../gen/health/v1/health_pb.ts';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { consoleTokens } from '../../../src/domain/token.ts';
import { isOf, readCheckpoint, readVerifierKey } from '../../../src/evidence/formats/checkpoint.ts';
import { createIssuance } from '../../../src/keys/issuance.ts';
import { createKeyRing, parseMasterKeys } from '../../../src/keys/key-ring.ts';
import { systemClock } from '../../../src/operations/registry.ts';
import { acceptClock, painting, time } from '../../store/promises/fixtures.ts';
import { tester } from '../../support/audit-log.ts';
import { commandsHere } from '../../support/commands-here.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { listenLocally } from '../../support/local-server.ts';
import { stripeSettings } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { services } from '../../support/services.ts';
import { openTestProvider } from '../../support/simulator.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { operatorTerms } from '../../support/tokens.ts';
import { typedClients, typedError } from '../../support/typed-clients.ts';
import { endless, errorRows, type Row, rows, type World } from './rpc-rows.ts';
import { transports } from './transports.ts';

const provider = openTestProvider(fileScope);
provider.report((order, payment) =>
  order.amount === 1n ? { status: 'AWAITING_BUYER', nextActionUrl: 'https://bank.example/act' } : payment,
);
const service = await startService(fileScope, {
  ...{ provider, limits: { pollMs: 3_600_000 }, commands: commandsHere },
  env: {
    ...stripeSettings,
    ARTSEAL_BACKUP_DIR: temporaryFolder(fileScope),
    ARTSEAL_BACKUP_EVERY: '20d',
    ARTSEAL_BACKUP_KEEP: '2',
    // No mail is sent.
    ARTSEAL_SMTP_URL: 'smtp://127.0.0.1:9',
    ARTSEAL_MAIL_FROM: 'registry@registry.example',
  },
});
const receiver = createServer((_request, response) => response.writeHead(204).end());
const receiverUrl = await listenLocally(fileScope, receiver, () => receiver.closeAllConnections());

/** The clients of a new internal system with every scope, and its token. */
async function addSystem(name: string) {
  const { token } = await service.issuance.issueToken(operatorTerms(name), tester);
  return { token, ...typedClients(createTypedTransport(service.internalUrl, token)) };
}

// The oldest of each list, so that lists of one item are the same for all transports.
const first = await addSystem('first');
await first.admin.createKey({ name: 'first gallery', tier: 1 });
await first.webhooks.createWebhook({ url: receiverUrl });
const { filingNo: coveredFiling } = await first.filings.createFiling(painting);
await eventually('the backup of the start', 60_000, () =>
  service.logLines.some((line) => line.includes('a backup was taken')),
);

/** Files an artwork that may be erased. */
async function fileExpired(): Promise<void> {
  const longAgo = time('2015-06-01T12:00:00+00:00');
  await acceptClock(service.store, longAgo);
  const by = await service.execute({ kind: 'FindCaller', name: 'first gallery' });
  await service.execute({ kind: 'FileArtwork', artwork: painting, at: longAgo, by });
}

/** What the rows of a transport name, and its token. */
async function createWorld(nth: number, responses: ReadonlyMap<DescMethod, Message>) {
  const system = `system ${nth}`;
  const { token, filings, escrows, webhooks } = await addSystem(system);
  const world: World = {
    ...{ nth, system, coveredFiling, receiverUrl },
    was: (method) => (responses.get(method) ?? assert.fail(method.name)) as never,
    openOrder: async (amount) => {
      const { filingNo } = await filings.createFiling(painting);
      const terms = { filingNo, buyerId: 'buyer-1', sellerId: 'seller-1' };
      return (await escrows.createEscrow({ ...terms, type: Escrow_Type.GUARANTEE, amount })).escrowId;
    },
    addWebhook: async () => (await webhooks.createWebhook({ url: receiverUrl })).webhook?.webhookId ?? '',
    delivered: async (webhookId) => {
      const status = Delivery_Status.DELIVERED;
      await eventually('the delivery', 60_000, async () => {
        const { deliveries } = await webhooks.listDeliveries({ webhookId, status });
        return deliveries.length > 0;
      });
    },
    signed: async () => {
      await eventually('a checkpoint by the current key', 60_000, () => {
        const checkpoint = readCheckpoint(service.publication.current()?.note ?? '', 'the checkpoint');
        const keys = service.publication.verifierKeys().map(readVerifierKey);
        return keys.some((key) => checkpoint.signatures.some((line) => isOf(line, key)));
      });
    },
    linkToken: async () => {
      const name = `${consoleTokens.link.prefix}${system}`;
      return (await service.issuance.issueToken(operatorTerms(name), tester)).token;
    },
    claimNotice: async () => {
      const claim = { by: undefined, attempt: system, nowS: 20, deadBeforeS: 10 };
      assert.equal((await service.execute({ kind: 'ClaimNotice', ...claim })).next, 'SEND');
    },
    loseSecret: async () => {
      const keyRing = createKeyRing(parseMasterKeys(`lost:${'0'.repeat(64)}`));
      const issuance = createIssuance({ ...service, keyRing, environment: 'sandbox', clock: systemClock });
      await issuance.issueKey(
        { name: `lost ${nth}`, tier: 'TRIAL', monthlyQuota: undefined, unlimited: false },
        tester,
      );
    },
  };
  return { world, token };
}

/** The messages that a sample request gets, without progress. A stream without an end is left. */
async function call(transport: Transport, { method }: Row, request: object): Promise<Message[]> {
  const client = createClient(method.parent, transport) as Record<string, AnyCall>;
  const leaving = new AbortController();
  const response = client[method.localName]?.(request, { signal: leaving.signal }) ?? assert.fail();
  if (!(Symbol.asyncIterator in response)) return [await response];
  const messages: Message[] = [];
  for await (const message of response) {
    if ('response' in message && (message.response as { case?: string }).case === 'progress') continue;
    messages.push(message);
    if (messages.length === endless.get(method)) break;
  }
  leaving.abort();
  return messages;
}

type AnyCall = (request: object, options: CallOptions) => Promise<Message> | AsyncIterable<Message>;

/** Ids, times and the like, which differ in each call. */
const masks: readonly (readonly [pattern: RegExp, mask: string])[] = [
  [/\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d))?/g, 'TIME'],
  [/AS-\d{4}-\d{6}/g, 'AS'],
  [/\b[0-9a-f]{64}\b/g, 'HASH'],
  [/ES-\d{4}-[0-9A-Z]{4}/g, 'ES'],
  [/\b(key|tok|wh|evt|el|rg|ak_sandbox|sk_sandbox|it_sandbox|whsec)_[\w+/=-]+/g, '$1'],
  [/\b(system|gallery|reader|lost|house) [1-9]\b|\b(person)-[1-9]\b/g, '$1$2'],
];

/** What depends on how much was done before. */
const volatileFields = [
  'id',
  'sequence',
  'position',
  'next',
  'nextPageToken',
  'proof',
  'vkey',
  'path',
  'file',
];

/** A response without what differs in each call. */
function masked(method: DescMethod, message: Message, volatile: readonly string[]): unknown {
  const hidden = [...volatileFields, ...volatile];
  const text = JSON.stringify(toJson(method.output, message), (name, value) =>
    hidden.includes(name) ? undefined : value,
  );
  return JSON.parse(masks.reduce((masking, [pattern, mask]) => masking.replaceAll(pattern, mask), text));
}

const nameOf = ({ parent, name }: DescMethod) => `${parent.typeName}/${name}`;
const described: readonly DescService[] = [...services, Health];

/** The provider of this service keeps the real time. test/cli/sandbox.test.ts has its success. */
const alwaysRejected = [nameOf(MaintenanceService.method.advanceClock)];

test('every RPC has a sample request, and every service a rejected one', () => {
  const methods = described.flatMap((one) => one.methods.map(nameOf));
  const sampled = [...rows.map(({ method }) => nameOf(method)), ...alwaysRejected];
  assert.deepEqual(sampled.toSorted(), methods.toSorted());
  const rejecting = errorRows.map(([{ method }]) => method.parent.typeName);
  assert.deepEqual(rejecting.toSorted(), described.map(({ typeName }) => typeName).toSorted());
});

/** What the rows returned over the first transport. */
let expected: Record<string, unknown> | undefined;

for (const [nth, [name, createTransport]] of Object.entries(transports).entries())
  test(`every RPC returns the same: ${name}`, async () => {
    await fileExpired();
    const responses = new Map<DescMethod, Message>();
    const results: Record<string, unknown> = {};
    const { world, token } = await createWorld(nth + 1, responses);
    const transportOf = (bearer: string) => createTransport(service.internalUrl, bearer);
    const transport = transportOf(token);
    for (const row of rows) {
      const { method, volatile } = row;
      const by = row.token === undefined ? transport : transportOf(await row.token(world));
      const messages = await call(by, row, await row.request(world)).catch((error) => {
        throw new Error(nameOf(method), { cause: error });
      });
      responses.set(method, messages.at(-1) ?? assert.fail(`${nameOf(method)} returned nothing.`));
      const result = messages.map((message) => masked(method, message, volatile));
      if (method.output.fields.length > 0)
        assert.notDeepEqual(result, [{}], `${nameOf(method)} returned nothing`);
      results[nameOf(method)] = result;
    }
    for (const [row, reason] of errorRows) {
      const { message } = await typedError(call(transport, row, await row.request(world)), reason);
      results[`${nameOf(row.method)}: ${reason}`] = message;
    }
    expected ??= results;
    assert.deepEqual(results, expected);
  });
