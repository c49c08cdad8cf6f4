import { createHmac, randomUUID } from 'node:crypto';
import { createDispatcher } from '../api/operation.ts';
import { createRecentRequests } from '../api/recent-requests.ts';
import { createAccessService } from '../api/services/access-service.ts';
import { createAdminService } from '../api/services/admin-service.ts';
import { createBackupService } from '../api/services/backup-service.ts';
import type { ProcessParts, ServiceDependencies } from '../api/services/dependencies.ts';
import { createEscrowService, createReviewService } from '../api/services/escrow-service.ts';
import { createEventService, webhookMessage } from '../api/services/event-service.ts';
import {
  createEvidenceService,
  createProvenanceService,
  createSharedEvidence,
} from '../api/services/evidence-service.ts';
import { createFilingService } from '../api/services/filing-service.ts';
import { createMaintenanceService } from '../api/services/maintenance-service.ts';
import { createPaging } from '../api/services/paging.ts';
import { createPublicAccess } from '../api/services/public-access.ts';
import { createSessionService } from '../api/services/session-service.ts';
import { createWebhookService } from '../api/services/webhook-service.ts';
import type { WebhookSettings } from '../config/config.ts';
import { emailKey } from '../domain/registration.ts';
import { createFeed, createPolls } from '../events/feed.ts';
import { createAttempts } from '../events/webhooks/attempt.ts';
import { sendingLimits } from '../events/webhooks/limits.ts';
import { createOutgoing } from '../events/webhooks/outgoing.ts';
import { Sender } from '../events/webhooks/sender.ts';
import { checkTarget, createAddressPolicy } from '../events/webhooks/target.ts';
import { createCertificates } from '../evidence/certificate/certificates.ts';
import { createBundles } from '../evidence/log/bundle.ts';
import type { Publication, Signer } from '../evidence/log/signer.ts';
import { createOpenReads, createPublicLog } from '../evidence/log/tiles.ts';
import { readLog } from '../evidence/log/verification.ts';
import { accessPath } from '../http/rest/access-routes.ts';
import { linkPath } from '../http/rest/open-routes.ts';
import { createLinkTokens } from '../keys/link-tokens.ts';
import type { Logger } from '../lib/log.ts';
import { createMailer, type MailSettings } from '../mail/mailer.ts';
import { createNotices } from '../mail/notices.ts';
import { buildInfo } from '../packaging/build-info.ts';
import type { PaymentProvider } from '../payments/provider.ts';
import type { ReconciliationLimits } from '../payments/reconciliation/limits.ts';
import { createNotifications } from '../payments/reconciliation/notifications.ts';
import { createReconciler } from '../payments/reconciliation/reconciler.ts';
import { createRecovery } from '../payments/reconciliation/recovery.ts';
import type { BusinessTime } from '../store/filing-commands.ts';
import { executorOf, leads, type Store, shares } from '../store/store.ts';

/** What the service works with. */
export interface ServiceParts extends ProcessParts {
  readonly store: Store;
  readonly provider: PaymentProvider;
  /** From 0 to 1. */
  readonly random: () => number;
  readonly limits: ReconciliationLimits;
  /** How webhook endpoints are reached. */
  readonly webhooks: WebhookSettings;
  /** The mail server; undefined if there is none. */
  readonly mail: MailSettings | undefined;
  /** What is published of the evidence log. */
  readonly publication: Pick<Signer, keyof Publication | 'refresh'>;
  readonly log: Logger;
}

/** The service without listeners. */
export type Service = ReturnType<typeof createService>;

/** Returns the function that reads the business time. */
function createNow({ clock, businessClock }: ServiceParts, timestamp: (atMs: number) => string) {
  const instant = (atMs: number) => ({ atMs, timestamp: timestamp(atMs) });
  return (): BusinessTime => {
    const [real, aheadMs] = [instant(clock.nowMs()), businessClock.aheadMs()];
    return aheadMs === 0 ? real : { ...instant(real.atMs + aheadMs), real };
  };
}

/** What the access desk adds to the dependencies. */
function createDesk({ store, clock, mail, publicUrl = '' }: ServiceParts) {
  const addressKey = store.keyFor('pre-registered addresses');
  const sending = { execute: executorOf(store), clock, publicUrl, newAttempt: randomUUID };
  return {
    accessUrl: `${publicUrl}${accessPath}`,
    digestEmail: (email: string) => createHmac('sha256', addressKey).update(emailKey(email)).digest(),
    sendNotices:
      mail &&
      createNotices({
        ...sending,
        mailer: createMailer(mail, clock),
        isShared: store.instances !== undefined,
      }),
  };
}

/** Creates the services of the protos. */
const createServices = (dependencies: ServiceDependencies) => [
  createFilingService(dependencies),
  createProvenanceService(),
  createEvidenceService(dependencies),
  createEscrowService(dependencies),
  createEventService(dependencies),
  createWebhookService(dependencies),
  createAdminService(dependencies),
  createReviewService(dependencies),
  createBackupService(dependencies),
  createMaintenanceService(dependencies),
  createSessionService(dependencies),
  createAccessService(dependencies),
];

/** Creates the service from its store and its provider. */
export function createService(parts: ServiceParts) {
  const { store, provider, clock, businessClock, calendar, publication } = parts;
  const execute = executorOf(store);
  const paging = createPaging(store.keyFor('page tokens'));
  const timestamp = (atMs: number) => calendar.timestamp(atMs);
  const now = createNow(parts, timestamp);
  const business = { ...parts, execute, clock: businessClock };
  const reconciler = createReconciler({ ...business, now });
  const recovery = createRecovery({ ...business, reconciler });
  const openReads = createOpenReads(executorOf(store, shares.publicReads));
  const publicLog = createPublicLog({
    execute: openReads,
    publication,
    isShared: store.instances !== undefined,
  });
  const feed = createFeed(store, clock);
  const polls = createPolls();
  const recentRequests = createRecentRequests(store, clock);
  const idKey = store.keyFor('event ids');
  const linkTokens = createLinkTokens(store.keyFor('evidence links'));
  const targets = { ...parts.webhooks, policy: createAddressPolicy(parts.webhooks.networks) };
  const outgoing = createOutgoing({ ...parts.webhooks, clock });
  const attempt = createAttempts({ ...parts, outgoing, version: buildInfo.version });
  const sender = new Sender({
    ...{
      execute: executorOf(store, shares.webhooks),
      onEvents: store.onEvents,
      leads: () => leads(store),
      requestsInFlight: store.requestsInFlight,
    },
    ...{ attempt, clock: businessClock, random: parts.random, log: parts.log },
    message: (event) => webhookMessage(event, { idKey, timestamp }),
    limits: store.instances && { ...sendingLimits, listEveryMs: sendingLimits.listSharedEveryMs },
  });
  businessClock.onAdvance(recovery.wake);
  businessClock.onAdvance(() => sender.look());
  const dependencies: ServiceDependencies = {
    ...{ ...parts, now, timestamp, paging, reconciler, linkTokens, linkPath, feed, polls, idKey },
    ...{ attempt, recentRequests, bundles: createBundles(publication) },
    certificates: createCertificates({ ...parts, verifierKeys: publication.verifierKeys }),
    ...createDesk(parts),
    executeApart: execute,
    nowS: () => Math.floor(clock.nowMs() / 1_000),
    businessNowS: () => Math.floor(businessClock.nowMs() / 1_000),
    timestampS: (atS) => (typeof atS === 'number' ? timestamp(atS * 1_000) : ''),
    refreshLogKeys: publication.refresh,
    checkTarget: (url) => checkTarget(url, targets),
    onWebhookChange: () => sender.look(),
    onDecision: recovery.wake,
    readLog: () => readLog(execute),
  };
  return {
    dispatcher: createDispatcher(createServices(dependencies)),
    notifications: createNotifications({ provider, execute, clock: businessClock }),
    /** Where the listeners keep their calls. */
    recentRequests,
    /** The public part of the evidence log. */
    publicLog,
    sharedEvidence: createSharedEvidence(dependencies, openReads),
    publicAccess: createPublicAccess(dependencies, openReads),
    /** Starts to reconcile orders, including those of an earlier process, and to send webhooks. */
    start: async () => {
      await recovery.start();
      await sender.start();
    },
    /** Ends the calls that wait for events. */
    endWaiting: feed.end,
    /** The number of calls that wait for events. */
    waitingCalls: polls.waiting,
    /** Metrics of webhook sending. */
    sending: () => sender.metrics(),
    /** Stops. Abandons requests to the provider, waits shortly for webhook endpoints, and stores the results. */
    stop: async () => {
      recovery.stop();
      await Promise.all([reconciler.stop(), sender.stop()]);
      outgoing.close();
    },
  };
}
