import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { Filing_Status, FilingService } from '../gen/artseal/v1/filing_pb.ts';

// The yardstick of the internal API: the cost of Connect for Node with a handler that does nothing.

const answer = {
  filingNo: 'AS-2026-000001',
  status: Filing_Status.SUBMITTED,
  chain: 'Evidence chain under selection: no chain and no judicial-evidence capability is established.',
  hash: '0123456789abcdef'.repeat(4),
  timestamp: '2026-11-21T09:15:00+00:00',
};

const server = createServer(
  connectNodeAdapter({
    routes: (router) => router.rpc(FilingService.method.createFiling, () => answer),
  }),
);
server.listen(0, '127.0.0.1');
await once(server, 'listening');
process.stdout.write(`empty ready internal=http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
process.once('SIGTERM', () => process.exit(0));
