import type { IncomingHttpHeaders } from 'node:http';
import {
  Code,
  ConnectError,
  createClient,
  createRestClient,
  createTypedTransport,
  ErrorInfoSchema,
  FilingService,
  type ListFilingsResponse,
  ProvenanceService,
  type ReceivedWebhook,
  verifyWebhook,
  WebhookError,
  type WebhookEvent,
} from 'artseal/client';

// What a program can do that has nothing but the package: a signed call, a typed one, the reason of an error, and the
// verification of a webhook.

const setting = (name: string): string => process.env[name] ?? '';
const platform = createRestClient(setting('PUBLIC_URL'), {
  apiKey: setting('API_KEY'),
  apiSecret: setting('API_SECRET'),
});
const filed: Response = await platform.send('POST', '/api/v1/filing', setting('ARTWORK'));

const transport = createTypedTransport(setting('INTERNAL_URL'), setting('TOKEN'));
const { filings }: ListFilingsResponse = await createClient(FilingService, transport).listFilings({
  pageSize: 5,
});
const price: bigint | undefined = filings[0]?.price;

const apiError = await createClient(ProvenanceService, transport)
  .getProvenance({ filingNo: 'AS-2000-000001' })
  .then(undefined, ConnectError.from);
const [info] = apiError instanceof ConnectError ? apiError.findDetails(ErrorInfoSchema) : [];

const received = JSON.parse(setting('WEBHOOK')) as ReceivedWebhook & {
  readonly headers: IncomingHttpHeaders;
};
const event: WebhookEvent = verifyWebhook(received);
const refusedFor = (webhook: ReceivedWebhook): string | undefined => {
  try {
    return verifyWebhook(webhook).type;
  } catch (error) {
    return error instanceof WebhookError ? error.reason : undefined;
  }
};

process.stdout.write(
  JSON.stringify({
    status: filed.status,
    filed: await filed.json(),
    listed: filings.map(({ filingNo }) => filingNo),
    price: String(price),
    isNotFound: apiError instanceof ConnectError && apiError.code === Code.NotFound,
    reason: info?.reason,
    escrowId: event.data.escrowId,
    refusedFor: refusedFor({ ...received, headers: new Headers({ 'webhook-id': event.data.id }) }),
  }),
);
