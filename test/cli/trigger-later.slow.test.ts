import { join } from 'node:path';
import { test } from 'node:test';
import { startService } from '../support/service.ts';
import { triggered } from '../support/triggered.ts';

test('trigger makes the events happen that take up to a minute', { timeout: 300_000 }, async (t) => {
  const service = await startService(t);
  const { apiKey, apiSecret } = await service.platform();
  const env = {
    ARTSEAL_DATA_DIR: join(service.dataDir, 'none'),
    ARTSEAL_URL: service.publicUrl,
    ARTSEAL_API_KEY: apiKey,
    ARTSEAL_API_SECRET: apiSecret,
  };
  const types = [
    ...['escrow.hold_expiring', 'escrow.payment_returned', 'escrow.payment_disputed', 'escrow.dispute_won'],
    ...['escrow.dispute_lost', 'escrow.payment_restored'],
  ] as const;
  await Promise.all(types.map((type) => triggered(type, env)));
});
