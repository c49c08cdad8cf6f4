import { join } from 'node:path';
import type { DescMessage, DescMethod, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { AccessService } from '../../../gen/artseal/v1/access_pb.ts';
import { AdminService, Key_Tier, Party_Role, Token_Scope } from '../../../gen/artseal/v1/admin_pb.ts';
import { BackupService } from '../../../gen/artseal/v1/backup_pb.ts';
import { Escrow_State, Escrow_Type, EscrowService } from '../../../gen/artseal/v1/escrow_pb.ts';
import { EventService } from '../../../gen/artseal/v1/event_pb.ts';
import { EvidenceService } from '../../../gen/artseal/v1/evidence_pb.ts';
import { FilingService } from '../../../gen/artseal/v1/filing_pb.ts';
import { MaintenanceService } from '../../../gen/artseal/v1/maintenance_pb.ts';
import { ProvenanceService } from '../../../gen/artseal/v1/provenance_pb.ts';
import { DecideOrderRequest_Decision, ReviewService } from '../../../gen/artseal/v1/review_pb.ts';
import { SessionService } from '../../../gen/artseal/v1/session_pb.ts';
import { Delivery_Status, Webhook_Status, WebhookService } from '../../../gen/artseal/v1/webhook_pb.ts';
import { Health } from '../../../gen/health/v1/health_pb.ts';
import type { Reason } from '../../../src/domain/reason.ts';
import { artwork } from '../../support/samples.ts';

/** What the requests of one transport name. */
export interface World {
  /** Of the transport; a part of all names that its rows make. */
  readonly nth: number;
  /** The internal system that calls. */
  readonly system: string;
  /** Resolves when the current key has signed the evidence log: the last key was rotated for an earlier transport. */
  signed(): Promise<void>;
  /** A filing that a checkpoint of the evidence log covers. */
  readonly coveredFiling: string;
  /** Where webhooks arrive. */
  readonly receiverUrl: string;
  /** The response of an earlier row. */
  was<O extends DescMessage>(method: DescMethod & { readonly output: O }): MessageShape<O>;
  /** Files an artwork and opens an order for it, which waits for the buyer if `amount` is 1. Returns its id. */
  openOrder(amount: bigint): Promise<string>;
  /** Adds a webhook endpoint. Returns its id. */
  addWebhook(): Promise<string>;
  /** Resolves when a delivery has arrived. */
  delivered(webhookId: string): Promise<void>;
  /** Returns the token of a new console link. */
  linkToken(): Promise<string>;
  /** Claims the notice that is due, as a server that is then killed does. */
  claimNotice(): Promise<void>;
  /** Makes a key whose secret no master key opens. */
  loseSecret(): Promise<void>;
}

/** A sample request of an RPC. */
export interface Row {
  readonly method: DescMethod;
  readonly request: (world: World) => object | Promise<object>;
  /** The token of the call, if it is not that of the transport. */
  readonly token?: (world: World) => string | Promise<string>;
  /** Fields of its response whose values depend on the rows of the transports before. */
  readonly volatile: readonly string[];
}

function row<I extends DescMessage, O extends DescMessage>(
  method: DescMethod & { readonly input: I; readonly output: O },
  request: (world: World) => MessageInitShape<I> | Promise<MessageInitShape<I>>,
  ...volatile: readonly string[]
): Row {
  return { method, request, volatile };
}

const access = AccessService.method;
const admin = AdminService.method;
const backup = BackupService.method;
const escrow = EscrowService.method;
const event = EventService.method;
const evidence = EvidenceService.method;
const filing = FilingService.method;
const maintenance = MaintenanceService.method;
const session = SessionService.method;
const webhook = WebhookService.method;

const { STOP } = DecideOrderRequest_Decision;

/** The oldest item of a list that grows with each transport. */
const oldest = { pageSize: 1 };
const reason = 'sample';
const month = '2026-01';
const parties = [
  { role: Party_Role.BUYER, partyId: 'buyer-1', providerIds: { customer: 'cus_1', paymentMethod: 'pm_1' } },
  { role: Party_Role.SELLER, partyId: 'seller-1', providerIds: { account: 'acct_1' } },
];
const platform = ({ nth }: World) => `gallery ${nth}`;
const filingNo = ({ was }: World) => was(filing.createFiling).filingNo;
const escrowId = ({ was }: World) => was(escrow.createEscrow).escrowId;
const keyId = ({ was }: World) => was(admin.createKey).key?.keyId ?? '';
const webhookId = ({ was }: World) => was(webhook.createWebhook).webhook?.webhookId ?? '';
const linkId = ({ was }: World) => was(evidence.createEvidenceLink).linkId;
const registrationId = ({ was }: World) => was(access.preRegister).registration?.registrationId ?? '';
const party = ({ system }: World) => ({ caller: system, ...parties[0], reason });

/** The order matters: rows name what earlier rows made. */
export const rows: readonly Row[] = [
  row(Health.method.check, () => ({ service: FilingService.typeName })),
  row(Health.method.list, () => ({})),
  row(Health.method.watch, () => ({ service: FilingService.typeName })),

  row(maintenance.acceptClock, () => ({ reason })),
  row(maintenance.getClock, () => ({})),

  row(filing.createFiling, () => ({ ...artwork, author: '齐白石 \u{1F58C}', price: 2n ** 53n - 1n })),
  row(filing.getFiling, (world) => ({ filingNo: filingNo(world) })),
  row(filing.listFilings, () => oldest),
  row(ProvenanceService.method.getProvenance, (world) => ({ filingNo: filingNo(world) })),

  row(event.listEvents, () => ({ after: 0n })),
  row(event.watchEvents, ({ system }) => ({ platform: system, after: 0n })),
  row(admin.listAllEvents, ({ system }) => ({ platform: system })),

  row(evidence.getEvidence, ({ coveredFiling }) => ({ filingNo: coveredFiling })),
  row(
    evidence.getCertificate,
    async ({ coveredFiling, signed }) => {
      await signed();
      return { filingNo: coveredFiling };
    },
    'data',
  ),
  row(evidence.createEvidenceLink, (world) => ({ filingNo: filingNo(world) })),
  row(evidence.listEvidenceLinks, (world) => ({ filingNo: filingNo(world) })),
  row(admin.listAllLinks, (world) => ({ filingNo: filingNo(world) })),
  row(admin.revokeLink, (world) => ({ linkId: linkId(world), reason })),
  row(evidence.revokeEvidenceLink, (world) => ({ filingNo: filingNo(world), linkId: linkId(world) })),

  row(admin.addParty, party),
  row(admin.importParties, ({ system }) => ({
    parties: parties.map((one) => ({ caller: system, ...one })),
    reason,
  })),
  row(admin.listParties, ({ system }) => ({ caller: system })),
  row(escrow.createEscrow, (world) => ({
    ...{ filingNo: filingNo(world), type: Escrow_Type.GUARANTEE, amount: 2n ** 53n - 1n },
    ...{ buyerId: 'buyer-1', sellerId: 'seller-1' },
  })),
  row(escrow.getEscrow, (world) => ({ escrowId: escrowId(world) })),
  row(escrow.listEscrows, (world) => ({ filingNo: filingNo(world) })),
  row(escrow.releaseEscrow, (world) => ({ escrowId: escrowId(world) })),
  row(escrow.refundEscrow, async ({ openOrder }) => ({ escrowId: await openOrder(2n) })),
  row(ReviewService.method.decideOrder, async ({ openOrder }) => ({
    ...{ escrowId: await openOrder(1n), decision: STOP, reason },
  })),
  row(ReviewService.method.listOrders, () => ({ pageSize: 1, needsReview: true })),
  row(ReviewService.method.endOrder, ({ was }) => ({
    escrowId: was(ReviewService.method.decideOrder).order?.escrow?.escrowId ?? '',
    ...{ end: Escrow_State.CLOSED, evidence: '0'.repeat(64), reason },
  })),
  row(admin.listAuditLog, () => ({ pageSize: 1 })),
  row(
    admin.listRequests,
    ({ system }) => ({ pageSize: 1, platform: system }),
    ...['requestId', 'operation', 'durationMs'],
  ),
  row(admin.removeParty, party),

  row(webhook.createWebhook, ({ receiverUrl }) => ({ url: receiverUrl, eventTypes: ['filing.created'] })),
  row(webhook.listWebhooks, () => oldest),
  row(webhook.getWebhook, (world) => ({ webhookId: webhookId(world) })),
  row(webhook.updateWebhook, (world) => ({ webhookId: webhookId(world), description: 'changed' })),
  row(webhook.rotateWebhookSecret, (world) => ({ webhookId: webhookId(world) })),
  row(webhook.testWebhook, (world) => ({ webhookId: webhookId(world) })),
  row(webhook.redeliver, (world) => ({ webhookId: webhookId(world), sequence: 1n })),
  row(webhook.listDeliveries, async (world) => {
    await world.delivered(webhookId(world));
    return { webhookId: webhookId(world), status: Delivery_Status.DELIVERED };
  }),
  row(admin.redeliverEvents, (world) => ({ webhookId: webhookId(world), sequence: 1n, reason })),
  row(admin.listAllWebhooks, ({ system }) => ({ platform: system })),
  row(admin.setWebhookStatus, (world) => ({
    ...{ webhookId: webhookId(world), status: Webhook_Status.DISABLED, reason },
  })),
  row(webhook.deleteWebhook, (world) => ({ webhookId: webhookId(world) })),
  row(admin.removeWebhook, async ({ addWebhook }) => ({ webhookId: await addWebhook(), reason })),

  row(admin.getOverview, () => ({}), 'metrics', 'samples'),
  row(admin.createKey, (world) => ({ name: platform(world), tier: Key_Tier.TRIAL, reason })),
  row(admin.listKeys, () => oldest),
  row(admin.rotateKey, (world) => ({ keyId: keyId(world), overlapSeconds: 60, reason })),
  row(admin.suspendKey, (world) => ({ keyId: keyId(world), reason })),
  row(admin.resumeKey, (world) => ({ keyId: keyId(world), reason })),
  row(admin.revokeKey, (world) => ({ keyId: keyId(world), reason })),
  row(admin.updatePlatform, (world) => ({ caller: platform(world), tier: Key_Tier.STANDARD, reason })),
  row(admin.getPlatform, (world) => ({ caller: platform(world) })),
  row(admin.listPlatforms, () => oldest),
  row(admin.suspendPlatform, (world) => ({ caller: platform(world), reason })),
  row(admin.resumePlatform, (world) => ({ caller: platform(world), reason })),
  row(admin.getUsage, (world) => ({ caller: platform(world), month })),
  row(admin.listUsage, () => ({ ...oldest, month })),
  row(admin.createToken, ({ nth }) => ({ name: `reader ${nth}`, scopes: [Token_Scope.READ], reason })),
  row(admin.listTokens, () => oldest),
  row(admin.revokeToken, ({ was }) => ({ tokenId: was(admin.createToken).token?.tokenId ?? '', reason })),

  row(access.preRegister, ({ nth }) => ({
    ...{
      email: `person-${nth}@example.com`,
      name: 'Qi',
      intendedUse: 'paintings',
      tier: Key_Tier.TRIAL,
      reason,
    },
  })),
  row(access.listRegistrations, () => oldest),
  row(access.setAppointment, (world) => ({
    ...{ registrationId: registrationId(world), appointmentAt: '2099-01-01T09:00:00+08:00', reason },
  })),
  row(
    access.approveRegistration,
    (world) => ({
      ...{ registrationId: registrationId(world), name: `house ${world.nth}`, tier: Key_Tier.TRIAL, reason },
    }),
    'link',
  ),
  row(access.renewAccessLink, (world) => ({ registrationId: registrationId(world), reason }), 'link'),
  row(access.sendNotices, async ({ claimNotice }) => {
    await claimNotice();
    return { reason };
  }),
  row(access.markBounced, (world) => ({ registrationId: registrationId(world), detail: 'gone', reason })),
  row(access.removeRegistration, (world) => ({ registrationId: registrationId(world), reason })),

  row(session.getSession, () => ({})),
  { ...row(session.createSession, () => ({})), token: ({ linkToken }) => linkToken() },
  { ...row(session.endSession, () => ({})), token: ({ was }) => was(session.createSession).text },

  row(maintenance.countExpired, () => ({})),
  row(maintenance.eraseExpired, () => ({ reason })),
  row(maintenance.rotateSecrets, async ({ loseSecret }) => {
    await loseSecret();
    return { reason };
  }),
  row(maintenance.reencryptSecrets, () => ({ reason }), 'secrets', 'needed'),
  row(maintenance.rotateLogKey, () => ({ overlapSeconds: 0, reason })),
  row(maintenance.listLogKeys, () => ({})),
  row(maintenance.listInstances, () => ({}), 'since', 'seenSecondsAgo'),
  row(maintenance.reload, () => ({})),
  row(maintenance.check, () => ({}), 'text'),
  row(backup.createBackup, ({ nth }) => ({ file: `${nth}.tar` }), 'filings', 'orders'),
  row(backup.verifyBackup, ({ nth }) => ({ file: `${nth}.tar` }), 'filings', 'orders'),
  // The backup of the start is young enough.
  row(backup.rotateBackups, () => ({ keep: 2, ifOlderThanSeconds: 86_400 })),
];

/** How many messages of a stream without an end are compared. */
export const endless: ReadonlyMap<DescMethod, number> = new Map<DescMethod, number>([
  [Health.method.watch, 1],
  [event.watchEvents, 2],
]);

/** A request of a service that is rejected, and why. */
export const errorRows: readonly (readonly [Row, Reason])[] = [
  [row(Health.method.check, () => ({ service: 'artseal.v1.NoSuchService' })), 'NOT_FOUND'],
  [row(filing.getFiling, () => ({ filingNo: 'AS-1999-000001' })), 'FILING_NOT_FOUND'],
  [row(ProvenanceService.method.getProvenance, () => ({ filingNo: 'AS-1999-000001' })), 'FILING_NOT_FOUND'],
  [row(event.watchEvents, () => ({ after: -1n })), 'VALIDATION_FAILED'],
  [row(evidence.getEvidence, () => ({ filingNo: 'AS-1999-000001' })), 'FILING_NOT_FOUND'],
  [row(escrow.releaseEscrow, () => ({ escrowId: 'ES-1999-0000' })), 'ESCROW_NOT_FOUND'],
  [row(webhook.getWebhook, () => ({ webhookId: 'wh_none' })), 'WEBHOOK_NOT_FOUND'],
  [row(admin.suspendKey, () => ({ keyId: 'key_none' })), 'NOT_FOUND'],
  [
    row(ReviewService.method.decideOrder, () => ({ escrowId: 'ES-1999-0000', decision: STOP, reason })),
    'ESCROW_NOT_FOUND',
  ],
  [row(maintenance.advanceClock, () => ({ seconds: 60 })), 'PERMISSION_DENIED'],
  [row(access.markBounced, () => ({ registrationId: 'rg_none' })), 'NOT_FOUND'],
  [row(session.endSession, () => ({})), 'PERMISSION_DENIED'],
  [row(backup.verifyBackup, () => ({ file: join('..', 'none.tar') })), 'VALIDATION_FAILED'],
];
