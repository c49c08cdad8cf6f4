import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Key_Tier } from '../../../gen/artseal/v1/admin_pb.ts';
import type { ApiCredentials } from '../../../src/client/sign.ts';
import { createManualClock } from '../../support/clock.ts';
import { fileScope } from '../../support/file-scope.ts';
import { startService } from '../../support/service.ts';
import { type RestAnswer, send } from '../../support/signed-request.ts';

const { TRIAL, STANDARD, ENTERPRISE } = Key_Tier;
const clock = createManualClock();
const service = await startService(fileScope, { clock });
const { admin } = await service.operator();

async function create(name: string, agreement: object): Promise<ApiCredentials> {
  const { key, apiSecret } = await admin.createKey({ name, ...agreement });
  return { apiKey: key?.apiKey ?? '', apiSecret };
}

/** A query that an accepted caller gets FILING_NOT_FOUND for. */
const ask = (platform: ApiCredentials): Promise<RestAnswer> =>
  send(service.publicUrl, platform, { target: '/api/v1/provenance/AS-2026-999999' });

const codeOf = async (platform: ApiCredentials): Promise<string> => (await ask(platform)).json.code;
const policyOf = ({ headers }: RestAnswer) => String(headers['ratelimit-policy']);
const standingOf = ({ headers }: RestAnswer) => String(headers.ratelimit);

test('a new quota holds for the next call', async () => {
  const caller = 'raised';
  const platform = await create(caller, { tier: ENTERPRISE, monthlyQuota: 1n });
  assert.equal(await codeOf(platform), 'FILING_NOT_FOUND');
  assert.equal(await codeOf(platform), 'QUOTA_EXCEEDED');

  await admin.updatePlatform({ caller, monthlyQuota: 3n });
  const raised = await ask(platform);
  assert.equal(raised.json.code, 'FILING_NOT_FOUND');
  assert.match(policyOf(raised), /"monthly";q=3;/);
  assert.match(standingOf(raised), /"monthly";r=1;/);

  await admin.updatePlatform({ caller, monthlyQuota: 2n });
  const lowered = await ask(platform);
  assert.equal(lowered.json.code, 'QUOTA_EXCEEDED');
  assert.match(String(lowered.json.message), /All 2 calls of /);
  assert.match(standingOf(lowered), /"monthly";r=0;/);

  await admin.updatePlatform({ caller, unlimited: true });
  const unlimited = await ask(platform);
  assert.equal(unlimited.json.code, 'FILING_NOT_FOUND');
  assert.doesNotMatch(policyOf(unlimited), /monthly/);
});

test('the rate of a new tier holds for the next call', async () => {
  const caller = 'faster';
  const platform = await create(caller, { tier: TRIAL });
  const answers = await Promise.all(Array.from({ length: 11 }, () => ask(platform)));
  const limited = answers.filter(({ json }) => json.code === 'RATE_LIMITED').map(({ json }) => json.message);
  assert.deepEqual(limited, ['At most 10 calls a second.']);

  await admin.updatePlatform({ caller, tier: STANDARD });
  clock.advance(1_000);
  const faster = await ask(platform);
  assert.match(policyOf(faster), /"qps";q=50;w=1, "monthly";q=10000;/);
  assert.match(standingOf(faster), /"qps";r=49;/);
});
