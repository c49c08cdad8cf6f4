import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { temporaryFolder } from './temporary-folder.ts';

/** What a production needs beside its data folder. Its master key is in a temporary folder. */
export function productionSettings(t: TestContext) {
  const keys = join(temporaryFolder(t), 'keys');
  writeFileSync(keys, `of-2026:${'0123456789abcdef'.repeat(4)}\n`, { mode: 0o600 });
  return {
    ARTSEAL_ENVIRONMENT: 'production',
    ARTSEAL_CURRENCY: 'EUR',
    ARTSEAL_MASTER_KEY_FILE: keys,
    ARTSEAL_TLOG_ORIGIN: 'log.example/artseal',
    ARTSEAL_PAYMENT_PROVIDER: 'stripe',
    ARTSEAL_STRIPE_API_KEY: 'sk_live_1',
    ARTSEAL_STRIPE_WEBHOOK_SECRET: 'whsec_1',
  };
}
