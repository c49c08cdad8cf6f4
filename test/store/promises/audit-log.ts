import assert from 'node:assert/strict';
import type { Actor, AuditEntry } from '../../../src/domain/audit-entry.ts';
import { aheadMaxS } from '../../../src/domain/clock.ts';
import { scopes } from '../../../src/domain/token.ts';
import type { StoredKey } from '../../../src/store/caller-commands.ts';
import type { PageQuery } from '../../../src/store/paging.ts';
import type { Command, Kind, Taken } from '../../../src/store/store.ts';
import { tester } from '../../support/audit-log.ts';
import { businessScopes } from '../../support/tokens.ts';
import {
  assertListed,
  knownAs,
  linkEndS,
  newAccessLink,
  newKey,
  newLogKey,
  newRegistration,
  newToken,
  noon,
  oneUnitHeld,
  time,
  toRegister,
  toShare,
} from './fixtures.ts';
import type { StoreTests, TestStore } from './tests.ts';

/** The commands by which operators change something, be it that their callers may as well. */
type Governing = {
  [K in Kind]: Taken<K> extends { readonly by?: infer By }
    ? unknown extends By
      ? never
      : Actor extends By
        ? K
        : never
    : never;
}[Kind];

/** A change, and its entries in the audit log. */
type Change = readonly [
  command: Command<Governing>,
  ...entries: (readonly [
    action: string,
    subject: string,
    before: object | undefined,
    after: object | undefined,
  ])[],
];

const by: Actor = { actor: 'token tok_1 (office)', atS: 1_790_000_123, reason: 'agreed by telephone 齐' };
const platform = { name: 'auction house', tier: 'TRIAL', monthlyQuota: 1_000 } as const;
const agreed = { tier: 'ENTERPRISE', monthlyQuota: 'unlimited', filingCap: 'none' };
const galleryKey = { platform: 'gallery', ...agreed, expiresAtS: null };
const business = {
  name: 'ledger',
  scopes: businessScopes,
  platform: null,
  expiresAtS: null,
  revokedAtS: null,
};
const { name, ...issuedLimits } = platform;
const issued = { platform: name, ...issuedLimits, filingCap: 'none', status: 'ACTIVE', expiresAtS: null };

const auditedWebhook = {
  caller: 'gallery',
  url: 'https://gallery.example',
  eventTypes: ['*'],
  description: 'orders \u{1F58C}',
  status: 'ENABLED',
};

/** Each of these commands as it changes something that a store has. */
const changes: { readonly [K in Governing]: (store: TestStore, gallery: StoredKey) => Promise<Change> } = {
  AdvanceClock: async () => [
    { kind: 'AdvanceClock', by, seconds: aheadMaxS },
    ['sandbox advance', 'clock', { aheadS: 0 }, { aheadS: aheadMaxS }],
  ],
  AddPlatform: async () => {
    const key = newKey();
    return [{ kind: 'AddPlatform', by, platform, key }, ['key create', key.keyId, undefined, issued]];
  },
  AddFirstCallers: async () => {
    const [key, token] = [newKey(), newToken({ scopes })];
    return [
      { kind: 'AddFirstCallers', by, platform, key, service: 'office', token },
      ['key create', key.keyId, undefined, issued],
      ['token create', token.tokenId, undefined, { ...business, name: 'office', scopes }],
    ];
  },
  RotateKey: async (_store, { keyId }) => {
    const key = newKey();
    const before = { ...galleryKey, status: 'ACTIVE' };
    return [
      { kind: 'RotateKey', by, keyId, key, endsAtS: 1_790_000_500 },
      ['key rotate', keyId, before, { ...before, expiresAtS: 1_790_000_500, rotatedTo: key.keyId }],
    ];
  },
  SetKeyStatus: async (_store, { keyId }) => [
    { kind: 'SetKeyStatus', by, keyId, status: 'SUSPENDED' },
    ['key suspend', keyId, { ...galleryKey, status: 'ACTIVE' }, { ...galleryKey, status: 'SUSPENDED' }],
  ],
  ReplaceSeals: async (_store, { keyId, sealedSecret: from }) => {
    const seals = [
      { keyId, from, to: Buffer.from('other seal') },
      { keyId: 'key_none', from, to: Buffer.from('other seal') },
    ];
    return [
      { kind: 'ReplaceSeals', by, masterKey: 'main', seals },
      ['secrets re-encrypt', 'master key main', undefined, { keyIds: [keyId] }],
    ];
  },
  RotateLogKey: async (store) => {
    const [old, key] = [newLogKey(), newLogKey()];
    await store.perform({ kind: 'NameLog', origin: 'log.example', key: old });
    const signing = { vkey: old.vkey, endsAtS: null };
    const endsAtS = 1_790_000_500;
    const after = {
      keys: [
        { vkey: key.vkey, endsAtS: null },
        { ...signing, endsAtS },
      ],
    };
    return [
      { kind: 'RotateLogKey', by, key, endsAtS },
      ['evidence rotate-key', key.vkey, { keys: [signing] }, after],
    ];
  },
  ForkLog: async (store) => {
    const [old, key] = [newLogKey(), newLogKey()];
    await store.perform({ kind: 'NameLog', origin: 'log.example', key: old });
    const before = { origin: 'log.example', keys: [{ vkey: old.vkey, endsAtS: null }] };
    const after = { origin: 'log.example/2', keys: [{ vkey: key.vkey, endsAtS: null }] };
    return [
      { kind: 'ForkLog', by, origin: 'log.example/2', key, previous: 'the note' },
      ['evidence fork', 'log.example/2', before, after],
    ];
  },
  SetPlatformStatus: async () => [
    { kind: 'SetPlatformStatus', by, name: 'gallery', status: 'SUSPENDED' },
    ['platform suspend', 'gallery', { ...agreed, status: 'ACTIVE' }, { ...agreed, status: 'SUSPENDED' }],
  ],
  ChangeAgreement: async () => {
    const change = { tier: 'STANDARD', monthlyQuota: undefined, unlimited: false, filingCap: 20_000 };
    const after = { tier: 'STANDARD', monthlyQuota: 10_000, filingCap: 20_000, status: 'ACTIVE' };
    return [
      { kind: 'ChangeAgreement', by, name: 'gallery', change },
      ['platform set', 'gallery', { ...agreed, status: 'ACTIVE' }, after],
    ];
  },
  AddToken: async () => {
    const token = newToken();
    return [
      { kind: 'AddToken', by, name: 'ledger', token },
      ['token create', token.tokenId, undefined, { ...business, name: 'ledger' }],
    ];
  },
  RevokeToken: async (store) => {
    const token = newToken();
    const { tokenId } = await store.addService('ledger', token);
    const before = { ...business, name: 'ledger' };
    return [
      { kind: 'RevokeToken', by, tokenId },
      ['token revoke', tokenId, before, { ...before, revokedAtS: by.atS }],
    ];
  },
  AddParty: async (store) => {
    await store.perform(toRegister('gallery'));
    const providerIds = { customer: 'cus_2', paymentMethod: 'pm_2' };
    return [
      toRegister('gallery', { providerIds }, by),
      ['party add', 'buyer buyer-1 of gallery', knownAs.BUYER, providerIds],
    ];
  },
  RemoveParty: async (store) => {
    await store.perform(toRegister('gallery'));
    return [
      { kind: 'RemoveParty', by, caller: 'gallery', role: 'BUYER', partyId: 'buyer-1' },
      ['party remove', 'buyer buyer-1 of gallery', knownAs.BUYER, undefined],
    ];
  },
  ImportParties: async (store) => {
    await store.addPlatform('same');
    await store.perform(toRegister('same'));
    const parties = ['gallery', 'same'].flatMap((caller) => [{ ...toRegister(caller).party, caller }]);
    return [
      {
        kind: 'ImportParties',
        by,
        parties,
        callers: parties.map(({ caller }) => ({ caller, field: caller })),
        violations: [],
        isTrial: false,
      },
      ['party import', 'gallery', undefined, { added: 1, replaced: 0, unchanged: 1 }],
    ];
  },
  Decide: async (store, gallery) => {
    const { escrowId } = await store.opened(gallery);
    await store.stopped(escrowId, 'The amounts differ.');
    const before = {
      state: 'UNPAID',
      review: 'The amounts differ.',
      found: { ...oneUnitHeld, amount: Number(oneUnitHeld.amount) },
    };
    const after = { state: 'UNPAID', decision: 'RETURN', underWay: ['FREEZE PREPARED', 'CANCEL PREPARED'] };
    const named = { escrowId, decision: 'RETURN', instructionId: 'back', nowMs: 5_000 } as const;
    return [{ kind: 'Decide', by, ...named }, ['escrow resolve', escrowId, before, after]];
  },
  EraseFilings: async (store, gallery) => {
    const at = time('2012-02-29T12:00:00+00:00');
    const filingNos = [await store.fileOne(gallery, at), await store.fileOne(gallery, at)];
    await store.acceptClock(noon);
    return [
      { kind: 'EraseFilings', by, filingNos },
      ['retention purge', 'AS-2012-000001 to AS-2012-000002', undefined, { filings: 2, records: 2 }],
    ];
  },
  AcceptClock: async (store, gallery) => {
    await store.fileOne(gallery);
    return [
      { kind: 'AcceptClock', by },
      ['clock accept', 'clock', { timeS: noon.atMs / 1_000 }, { timeS: by.atS }],
    ];
  },
  ShareRecord: async (store, gallery) => {
    const filingNo = await store.fileOne(gallery);
    const expiresAtS = by.atS + 60;
    return [
      toShare(gallery, filingNo, 'el_1', { by, expiresAtS }),
      ['evidence link', 'el_1', undefined, { filingNo, sequence: 1, expiresAtS }],
    ];
  },
  RevokeLink: async (store, gallery) => {
    const filingNo = await store.fileOne(gallery);
    const share = toShare(gallery, filingNo, 'el_1');
    await store.perform(share);
    const link = { filingNo, sequence: 1, expiresAtS: share.expiresAtS };
    return [
      { kind: 'RevokeLink', by, linkId: 'el_1', filingNo, owner: undefined },
      ['evidence revoke-link', 'el_1', link, { ...link, revokedAtS: by.atS }],
    ];
  },
  ChangeWebhook: async (store, gallery) => {
    const { webhookId } = await store.addWebhook(gallery);
    const change = {
      eventTypes: ['key.rotated', 'filing.created'],
      url: { origin: 'https://other.example', sealedUrl: Buffer.from('main\0other') },
    } as const;
    const after = { eventTypes: ['filing.created', 'key.rotated'], url: 'https://other.example' };
    return [
      { kind: 'ChangeWebhook', by, webhookId, owner: undefined, change },
      ['webhook set', webhookId, auditedWebhook, { ...auditedWebhook, ...after }],
    ];
  },
  RotateWebhookSecret: async (store, gallery) => {
    const { webhookId } = await store.addWebhook(gallery);
    const given = { sealedSecret: Buffer.from('other seal'), previousEndsAtS: 1_790_000_500 };
    return [
      { kind: 'RotateWebhookSecret', by, webhookId, owner: undefined, ...given },
      ['webhook rotate-secret', webhookId, undefined, { previousEndsAtS: 1_790_000_500 }],
    ];
  },
  DeleteWebhook: async (store, gallery) => {
    const { webhookId } = await store.addWebhook(gallery);
    return [
      { kind: 'DeleteWebhook', by, webhookId, owner: undefined },
      ['webhook delete', webhookId, auditedWebhook, undefined],
    ];
  },
  Redeliver: async (store, gallery) => {
    await store.fileOne(gallery);
    const { webhookId } = await store.addWebhook(gallery);
    const which = { sequence: 1 };
    return [
      { kind: 'Redeliver', by, webhookId, owner: undefined, which, nowMs: noon.atMs },
      ['webhook redeliver', webhookId, undefined, { ...which, count: 1 }],
    ];
  },
  EndOrder: async (store, gallery) => {
    const { escrowId } = await store.opened(gallery);
    const before = { state: 'UNPAID', review: null };
    const evidence = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
    const after = { state: 'REFUNDED', decision: 'END', evidence, underWay: [] };
    return [
      { kind: 'EndOrder', by, escrowId, end: 'REFUNDED', evidence, at: noon },
      ['escrow resolve', escrowId, before, after],
    ];
  },
  AddRegistration: async () => {
    const registration = newRegistration('one@example.com');
    return [
      { kind: 'AddRegistration', by, registration },
      ['access add', registration.registrationId, undefined, { tier: 'STANDARD' }],
    ];
  },
  SetAppointment: async (store) => {
    const { registrationId } = await store.preRegistered('one@example.com');
    return [
      { kind: 'SetAppointment', by, registrationId, appointmentAtS: 1_790_000_500 },
      ['access appoint', registrationId, { appointmentAtS: null }, { appointmentAtS: 1_790_000_500 }],
    ];
  },
  ApproveRegistration: async (store) => {
    const { registrationId } = await store.preRegistered('one@example.com');
    const after = { platform: name, ...issuedLimits, filingCap: 'none', linkExpiresAtS: linkEndS };
    return [
      { kind: 'ApproveRegistration', by, registrationId, platform, link: newAccessLink() },
      ['access approve', registrationId, undefined, after],
    ];
  },
  RenewAccessLink: async (store) => {
    const { registrationId } = await store.preRegistered('one@example.com');
    await store.perform({ kind: 'ApproveRegistration', by, registrationId, platform, link: newAccessLink() });
    const link = { ...newAccessLink(), expiresAtS: linkEndS + 1 };
    return [
      { kind: 'RenewAccessLink', by, registrationId, link },
      ['access renew', registrationId, { linkExpiresAtS: linkEndS }, { linkExpiresAtS: linkEndS + 1 }],
    ];
  },
  ClaimNotice: async (store) => {
    await store.preRegistered('one@example.com');
    return [
      { kind: 'ClaimNotice', by, attempt: 'first', nowS: 20, deadBeforeS: 10 },
      ['access notify', 'notices', undefined, { due: 1 }],
    ];
  },
  MarkBounced: async (store) => {
    const { registrationId } = await store.preRegistered('one@example.com');
    await store.noticed(registrationId, 'SENT');
    return [
      { kind: 'MarkBounced', by, registrationId, detail: 'user unknown' },
      ['access bounced', registrationId, { notice: 'SENT' }, { notice: 'BOUNCED' }],
    ];
  },
  RemoveRegistration: async (store) => {
    const { registrationId } = await store.preRegistered('one@example.com');
    return [
      { kind: 'RemoveRegistration', by, registrationId },
      ['access remove', registrationId, { platform: null, notice: null }, undefined],
    ];
  },
  CloseOrder: async (store, gallery) => {
    const { escrowId } = await store.opened(gallery);
    const before = { state: 'UNPAID', review: null };
    return [
      { kind: 'CloseOrder', by, escrowId, at: noon },
      ['escrow resolve', escrowId, before, { state: 'CLOSED', decision: 'CLOSE', underWay: [] }],
    ];
  },
};

/** The entries that a change adds, oldest first. */
async function entriesOf(store: TestStore, change: () => Promise<unknown>): Promise<AuditEntry[]> {
  const known = new Set((await store.auditEntries()).map(({ id }) => id));
  await change();
  return (await store.auditEntries()).filter(({ id }) => !known.has(id)).reverse();
}

const parsed = (json: string | undefined): unknown => json && JSON.parse(json);

/** Secrets of a command in the forms that a log could show them in. */
function secretsOf(command: object): string[] {
  return Object.values(command).flatMap((value) => {
    if (value instanceof Uint8Array) {
      const bytes = Buffer.from(value);
      return [bytes.toString('hex'), bytes.toString('base64'), JSON.stringify(bytes), bytes.join()];
    }
    return typeof value === 'object' && value !== null ? secretsOf(value) : [];
  });
}

/** The audit log. */
export function auditPromises({ test }: StoreTests): void {
  for (const [kind, prepare] of Object.entries(changes)) {
    test(`${kind} writes its audit entry, and none if it changes nothing`, async (store) => {
      const [command, ...entries] = await prepare(store, store.gallery);
      const left = await entriesOf(store, () => store.perform(command));
      assert.deepEqual(
        left.map(({ id: _, before, after, ...act }) => ({
          ...act,
          before: parsed(before),
          after: parsed(after),
        })),
        entries.map(([action, subject, before, after]) => ({ ...by, action, subject, before, after })),
      );
      for (const secret of secretsOf(command)) {
        assert.ok(!JSON.stringify(left).includes(secret), `${kind} reveals a secret`);
      }
      // It changes nothing, or is rejected.
      const again = await entriesOf(store, () => store.perform(command).catch(() => {}));
      assert.deepEqual(again, []);
    });
  }

  test('audit entries are listed newest first, in pages, since a time if one is given', async (store) => {
    const { keyId } = store.gallery;
    for (const atS of [10, 20, 30, 40]) {
      const status = atS % 20 === 0 ? 'ACTIVE' : 'SUSPENDED';
      await store.perform({ kind: 'SetKeyStatus', by: { ...by, atS }, keyId, status });
    }
    for (const [sinceS, expected] of [
      [undefined, [40, 30, 20, 10, tester.atS]],
      [20, [40, 30, 20, tester.atS]],
      [tester.atS + 1, []],
    ] as const) {
      const list = (page: PageQuery) => store.perform({ kind: 'ListAuditLog', sinceS, page });
      await assertListed(list, ({ atS }) => atS, expected);
    }
  });
}
