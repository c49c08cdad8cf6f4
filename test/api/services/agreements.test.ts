import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Key_Tier } from '../../../gen/artseal/v1/admin_pb.ts';
import type { ApiCredentials } from '../../../src/client/sign.ts';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { createManualClock } from '../../support/clock.ts';
import { fileScope } from '../../support/file-scope.ts';
import { artwork } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { type RestAnswer, send } from '../../support/signed-request.ts';
import { typedClients } from '../../support/typed-clients.ts';

const { TRIAL, STANDARD, ENTERPRISE } = Key_Tier;
const clock = createManualClock();
const service = await startService(fileScope, { clock });
const { admin } = typedClients(createTypedTransport(service.internalUrl, await service.token(true)));

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

test('a cap on filings is agreed, raised and removed', async () => {
  const caller = 'capped';
  const platform = await create(caller, { tier: TRIAL, filingCap: 1n });
  const file = async () => {
    const body = JSON.stringify(artwork);
    const { status, json } = await send(service.publicUrl, platform, { target: '/api/v1/filing', body });
    return json.code ?? status;
  };
  const codes = [await file(), await file()];
  assert.equal((await admin.getUsage({ caller })).filingsInYear, 1n);
  await admin.updatePlatform({ caller, filingCap: 2n });
  codes.push(await file(), await file());
  await admin.updatePlatform({ caller, noFilingCap: true, reason: 'agreed' });
  codes.push(await file());
  assert.deepEqual(codes, [200, 'FILING_CAP_REACHED', 200, 'FILING_CAP_REACHED', 200]);
  const [entry] = (await admin.listAuditLog({ pageSize: 1 })).entries;
  assert.deepEqual([entry?.action, entry?.reason], ['platform set', 'agreed']);
  const capOf = (json = '') => JSON.parse(json).filingCap;
  assert.deepEqual([capOf(entry?.before), capOf(entry?.after)], [2, 'none']);
});
