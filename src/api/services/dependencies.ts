import type { Actor } from '../../domain/audit-entry.ts';
import type { Calendar } from '../../domain/calendar.ts';
import type { Environment } from '../../domain/caller.ts';
import type { BusinessClock, Clock } from '../../domain/clock.ts';
import type { Finding } from '../../domain/finding.ts';
import type { PartyRules } from '../../domain/party.ts';
import type { Feed, Polls } from '../../events/feed.ts';
import type { WebhookMessage } from '../../events/webhooks/attempt.ts';
import type { Certificates } from '../../evidence/certificate/certificates.ts';
import type { Bundles } from '../../evidence/log/bundle.ts';
import type { KeyRing } from '../../keys/key-ring.ts';
import type { LinkTokens } from '../../keys/link-tokens.ts';
import type { PaymentProvider } from '../../payments/provider.ts';
import type { Reconciler } from '../../payments/reconciliation/reconciler.ts';
import type { BusinessTime } from '../../store/filing-commands.ts';
import type { Registration } from '../../store/registration-commands.ts';
import type { Execute } from '../../store/store.ts';
import type { StoredWebhook, WebhookTestResult } from '../../store/webhook-commands.ts';
import type { RecentRequests } from '../recent-requests.ts';
import type { Paging } from './paging.ts';

/** Takes and verifies backups in a child process. */
export interface BackupAccess {
  /** As `run` of operations/backup/commands.ts. */
  readonly run: (words: readonly string[], signal: AbortSignal) => AsyncIterable<object>;
  /** As `createBackupPlaces` of operations/backup/places.ts. */
  readonly places: Readonly<
    Record<'newFile' | 'existingFile' | 'folder', (name: string, isLocal: boolean) => Promise<string>>
  >;
  /** How many backups a token must keep. */
  readonly keepMin: number;
}

/** Something that a running server can read again. */
export interface Part {
  readonly name: 'master keys' | 'public certificate' | 'internal certificate';
  /** FAILED: what was read cannot be used, and what was in use stays. NOT_RELOADABLE: it changes only with a restart. */
  readonly result: 'RELOADED' | 'FAILED' | 'NOT_RELOADABLE';
  /** Of RELOADED, the names of the master keys, or when the certificate expires. Otherwise why. */
  readonly detail: string;
}

/**
 * Reads master keys and certificates again: all of the new keys are used, or none. Returns no part if no server runs. Throws
 * UNAVAILABLE while the server starts.
 */
export type Reload = () => Promise<readonly Part[]>;

/** The state of a running server: the messages of GetOverview, before they are messages. Throws UNAVAILABLE if no server runs. */
export type ReadOverview = () => Promise<{
  readonly faults: readonly { readonly part: string; readonly fault: string }[];
  readonly metrics: readonly {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly value: number;
  }[];
  readonly samples: readonly Readonly<Record<'atS' | 'calls' | 'rejected' | 'failed' | 'filings', number>>[];
}>;

/**
 * Sends notices, and yields the end of each attempt: `createNotices` of mail/notices.ts. Throws RATE_LIMITED, UNAVAILABLE.
 */
export type SendNotices = (
  by: Actor,
  signal: AbortSignal,
) => AsyncIterable<{
  readonly registration: Pick<Registration, 'registrationId' | 'id'>;
  readonly result: 'SENT' | 'UNKNOWN' | 'BOUNCED';
  readonly detail: string;
  readonly due: number;
}>;

/** What the process that runs the services gives them. */
export interface ProcessParts {
  readonly clock: Clock;
  readonly businessClock: BusinessClock;
  /** Whether operators may advance it: the deployment is a sandbox, and its provider has the same clock. */
  readonly isClockAdvanceable: boolean;
  readonly calendar: Calendar;
  /** The watch of the clock that dates filings. */
  readonly filingClock: {
    /** As `ClockReading.setByS`. */
    readonly setByS: () => number;
    /** Resolves when the server dates filings by a clock that was accepted before. */
    readonly refresh: () => Promise<void>;
  };
  readonly reload: Reload;
  readonly readOverview: ReadOverview;
  readonly environment: Environment;
  readonly keyRing: KeyRing;
  /** ISO 4217 code of all amounts and prices. */
  readonly currency: string;
  /** Where others reach the public API, without a slash at its end; undefined if that is not known. */
  readonly publicUrl: string | undefined;
  /** Whether the checkpoint file or a witness shows that the evidence log was rolled back. Filings are rejected then. */
  readonly isRolledBack: () => boolean;
  /** The rules of provider ids; undefined if parties need no registration. */
  readonly partyRules: PartyRules | undefined;
  /** Returns a globally unique instruction id. */
  readonly newInstructionId: () => string;
  readonly backups: BackupAccess;
  /** Checks the deployment in a child process. Throws RATE_LIMITED. */
  readonly check: (signal: AbortSignal) => AsyncIterable<Finding>;
}

/** What the services work with; each takes what it needs. */
export interface ServiceDependencies extends ProcessParts {
  readonly now: () => BusinessTime;
  /** Unix seconds. */
  readonly nowS: () => number;
  /** The time of the business clock, Unix seconds. */
  readonly businessNowS: () => number;
  /** RFC 3339 of Unix milliseconds, in the business time zone. */
  readonly timestamp: (atMs: number) => string;
  /** The same of Unix seconds; empty if there are none. */
  readonly timestampS: (atS: number | null | undefined) => string;
  /** Runs a command that is not part of a call, such as what must be read before the command that admits a call. */
  readonly executeApart: Execute;
  /** Resolves when the keys of the evidence log that sign from now on are published. */
  readonly refreshLogKeys: () => Promise<void>;
  readonly paging: Paging;
  readonly bundles: Bundles;
  readonly certificates: Certificates;
  readonly linkTokens: LinkTokens;
  /** The path of links to evidence on the public listener, before the token. */
  readonly linkPath: string;
  /** One-time links to API keys before the token: a URL, or a path if the address of the service is not known. */
  readonly accessUrl: string;
  /** The digest by which pre-registered addresses are compared. */
  readonly digestEmail: (email: string) => Uint8Array;
  /** Undefined if no mail server is set. */
  readonly sendNotices: SendNotices | undefined;
  readonly provider: Pick<PaymentProvider, 'check'>;
  readonly reconciler: Pick<Reconciler, 'carryOut'>;
  readonly feed: Feed;
  readonly polls: Polls;
  /** The calls that the listeners of this process ended. */
  readonly recentRequests: Pick<RecentRequests, 'list'>;
  /** The key of event ids, as in `eventId`. */
  readonly idKey: Uint8Array;
  /** Returns the rule that the URL of an endpoint breaks, to follow the name of its field; undefined if it is allowed. */
  readonly checkTarget: (url: string) => string | undefined;
  /** Sends a signed message to an endpoint once and waits for the response, up to a timeout. Never rejects. */
  readonly attempt: (webhook: StoredWebhook, message: WebhookMessage) => Promise<WebhookTestResult>;
  /** Called when endpoints or their deliveries may have changed. */
  readonly onWebhookChange: () => void;
  /** Called when an operator has made an order due. */
  readonly onDecision: () => void;
  /** As `readLog` of evidence/log/verification.ts. */
  readonly readLog: () => Promise<void>;
}
