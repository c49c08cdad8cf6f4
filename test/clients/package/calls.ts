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
} from 'artseal/client';

// What a program can do that has nothing but the package: a signed call, a typed one, and the reason of a refusal.

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

const refusal = await createClient(ProvenanceService, transport)
  .getProvenance({ filingNo: 'AS-2000-000001' })
  .then(undefined, ConnectError.from);
const [info] = refusal instanceof ConnectError ? refusal.findDetails(ErrorInfoSchema) : [];

process.stdout.write(
  JSON.stringify({
    status: filed.status,
    filed: await filed.json(),
    listed: filings.map(({ filingNo }) => filingNo),
    price: String(price),
    isNotFound: refusal instanceof ConnectError && refusal.code === Code.NotFound,
    reason: info?.reason,
  }),
);
