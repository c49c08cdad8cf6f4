import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { tester } from '../../support/audit-log.ts';
import { createManualClock } from '../../support/clock.ts';
import { fileScope } from '../../support/file-scope.ts';
import { startService } from '../../support/service.ts';
import { operatorTerms } from '../../support/tokens.ts';
import { typedClients, typedError } from '../../support/typed-clients.ts';

const noon = Date.parse('2026-11-21T12:00:00Z');

const clock = createManualClock(noon);
const service = await startService(fileScope, { clock });
const { token, stored } = await service.issuance.issueToken(operatorTerms('office'), tester);
const { tokenId } = stored;
const { admin } = typedClients(createTypedTransport(service.internalUrl, token));

test('the audit log has each change by RPC: token, reason, and the values before and after', async () => {
  const { keyId, caller } = await service.platform('TRIAL');
  await admin.suspendKey({ keyId, reason: 'leaked' });
  await admin.suspendPlatform({ caller });
  const { entries } = await admin.listAuditLog({});
  const [platform, key] = entries;
  assert.deepEqual(
    [platform?.actor, platform?.action, platform?.subject, platform?.reason],
    [`token ${tokenId} (office)`, 'platform suspend', caller, ''],
  );
  assert.deepEqual(
    [key?.at, key?.actor, key?.action, key?.subject, key?.reason],
    ['2026-11-21T12:00:00+00:00', `token ${tokenId} (office)`, 'key suspend', keyId, 'leaked'],
  );
  const common = { platform: caller, tier: 'TRIAL', monthlyQuota: 1_000, filingCap: 'none' };
  assert.deepEqual(JSON.parse(key?.before ?? ''), { ...common, status: 'ACTIVE', expiresAtS: null });
  assert.deepEqual(JSON.parse(key?.after ?? ''), { ...common, status: 'SUSPENDED', expiresAtS: null });
  const created = entries[2];
  assert.deepEqual([created?.action, created?.subject, created?.before], ['key create', keyId, '']);
});

test('every call that changes something stores its reason, and rejects one that breaks a rule', async () => {
  const { keyId, caller } = await service.platform();
  const rotatable = await service.platform();
  const changes: readonly ((reason: string) => Promise<unknown>)[] = [
    (reason) => admin.createKey({ name: `gallery ${reason}`, tier: 1, reason }),
    (reason) => admin.rotateKey({ keyId: rotatable.keyId, reason }),
    (reason) => admin.suspendKey({ keyId, reason }),
    (reason) => admin.resumeKey({ keyId, reason }),
    (reason) => admin.revokeKey({ keyId, reason }),
    (reason) => admin.suspendPlatform({ caller, reason }),
    (reason) => admin.resumePlatform({ caller, reason }),
  ];
  for (const [place, change] of changes.entries()) {
    const { message } = await typedError(change('a\nb'), 'VALIDATION_FAILED');
    assert.match(message, /\breason must /);
    await change(`why ${place}`);
    const [entry] = (await admin.listAuditLog({ pageSize: 1 })).entries;
    assert.equal(entry?.reason, `why ${place}`);
  }
});

test('entries are listed newest first, page by page, from a time on', async () => {
  const { keyId } = await service.platform();
  for (let hour = 0; hour < 4; hour += 1) {
    await (hour % 2 === 0 ? admin.suspendKey({ keyId }) : admin.resumeKey({ keyId }));
    clock.leap(3_600_000);
  }
  const since = '2026-11-21T21:00:00+08:00';
  const first = await admin.listAuditLog({ pageSize: 2, since });
  const pageToken = first.nextPageToken;
  const second = await admin.listAuditLog({ pageSize: 2, since, pageToken });
  assert.deepEqual(
    [...first.entries, ...second.entries].map(({ at }) => at.slice(11, 13)),
    ['15', '14', '13'],
  );
  assert.equal(second.nextPageToken, '');
  await typedError(admin.listAuditLog({ pageSize: 2, pageToken }), 'VALIDATION_FAILED');
  for (const wrong of ['2026-11-21', 'yesterday', '2026-11-21T21:00:00']) {
    const { message } = await typedError(admin.listAuditLog({ since: wrong }), 'VALIDATION_FAILED');
    assert.match(message, /^since must be RFC 3339/);
  }
});
