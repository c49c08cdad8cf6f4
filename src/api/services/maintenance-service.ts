import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  CheckResponse_Level,
  type ExpiredYearSchema,
  MaintenanceService,
  ReloadResponse_Part_Result,
  type RotateSecretsResponse_ApiKeySchema,
  type RotateSecretsResponse_LogKeySchema,
  type RotateSecretsResponse_WebhookSchema,
  type RotateSecretsResponseSchema,
} from '../../../gen/artseal/v1/maintenance_pb.ts';
import type { Actor } from '../../domain/audit-entry.ts';
import { aheadMaxS } from '../../domain/clock.ts';
import { yearOfFiling } from '../../domain/filing.ts';
import { clockFaultText, findClockFault } from '../../domain/filing-clock.ts';
import { ApiError } from '../../domain/reason.ts';
import { checkRange, type Violation } from '../../domain/violation.ts';
import { newWebhookSecret } from '../../events/webhooks/signature.ts';
import { hasEnded, isAhead, mintLogKey, signsAt } from '../../evidence/log/signing-keys.ts';
import { createIssuance, type IssuanceDependencies } from '../../keys/issuance.ts';
import {
  countSeals,
  findUnopened,
  reencryptSecrets,
  type SealedKey,
  sealedKeys,
  sealedLogKeys,
  sealedWebhookSecrets,
  sealedWebhookUrl,
  sealUrl,
} from '../../keys/sealed-secrets.ts';
import type { StoredKey } from '../../store/caller-commands.ts';
import type { LogKey } from '../../store/log-commands.ts';
import { type ExpiredFiling, erasedPerRequestMax } from '../../store/operator-commands.ts';
import { allOf } from '../../store/paging.ts';
import type { Execute } from '../../store/store.ts';
import type { StoredWebhook } from '../../store/webhook-commands.ts';
import { actorOf, type Implementation, implement, type Operations } from '../operation.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { listing } from './paging.ts';

/** MaintenanceService, for operators. */
export function createMaintenanceService(dependencies: ServiceDependencies): Implementation {
  const { check, reload, timestampS } = dependencies;
  return implement(MaintenanceService, 'operate', {
    ...createClockOperations(dependencies),
    ...createRetentionOperations(dependencies),
    ...createSecretOperations(dependencies),
    ...createLogKeyOperations(dependencies),
    listInstances: {
      run: async (_, { execute }) => {
        const instances = await execute({ kind: 'ListInstances' });
        return {
          instances: instances.map(({ facts: { host, processId, version, sinceS }, unseenMs, ...is }) => ({
            ...{ host, processId, version, since: timestampS(sinceS) },
            seenSecondsAgo: Math.floor(unseenMs / 1_000),
            ...{ isGone: is.isGone, isLeading: is.isLeading, isThis: is.isOwn },
          })),
        };
      },
    },
    check: {
      run: async function* (_, { signal }) {
        for await (const { level: word, ...finding } of check(signal)) {
          const level = CheckResponse_Level[word.toUpperCase() as Uppercase<typeof word>];
          yield { ...finding, level };
        }
      },
    },
    reload: {
      run: async (_, call) => {
        await call.admit();
        const parts = await reload();
        return { parts: parts.map((part) => ({ ...part, result: ReloadResponse_Part_Result[part.result] })) };
      },
    },
  });
}

function createClockOperations(dependencies: ServiceDependencies) {
  const { clock, nowS: readNowS, filingClock, timestampS } = dependencies;
  const { businessClock, businessNowS, isClockAdvanceable } = dependencies;
  return {
    getClock: {
      run: async (_, { execute }) => {
        const { newestS, datedS, aheadS } = await execute({ kind: 'ReadLogClock' });
        // Read after the store, so that no stored time is newer.
        const nowS = readNowS();
        const fault = findClockFault({ nowS, newestS, datedS, setByS: filingClock.setByS() });
        return {
          clock: timestampS(nowS),
          newestRecord: timestampS(newestS),
          fault: fault ? clockFaultText(fault) : '',
          sandboxClock: aheadS > 0 ? timestampS(nowS + aheadS) : '',
        };
      },
    },
    acceptClock: {
      run: async ({ reason }, call) => {
        const by = actorOf(call, clock, reason);
        const { acceptedS, newestS } = await call.execute({ kind: 'AcceptClock', by });
        await filingClock.refresh();
        return { accepted: timestampS(acceptedS), newestRecord: timestampS(newestS) };
      },
    },
    advanceClock: {
      check: ({ seconds }) => checkRange('seconds', seconds, { min: 1, max: aheadMaxS }),
      run: async ({ seconds, reason }, call) => {
        if (!isClockAdvanceable)
          throw new ApiError(
            'PERMISSION_DENIED',
            'Only the clock of a sandbox with the simulated payment provider can be advanced. Nothing was changed.',
          );
        const by = actorOf(call, clock, reason);
        const aheadSeconds = await call.execute({ kind: 'AdvanceClock', by, seconds });
        // A replay returns what the first call did, and later calls may have advanced it further.
        businessClock.setAhead(aheadSeconds);
        return { sandboxClock: timestampS(businessNowS()), aheadSeconds };
      },
    },
  } satisfies Partial<Operations<typeof MaintenanceService>>;
}

/** The operations of MaintenanceService on filings whose retention period is over. */
function createRetentionOperations({ clock, nowS, paging, timestampS, executeApart }: ServiceDependencies) {
  /** A page that is as long as one command allows. */
  const pageFrom = (from: number | undefined) => ({ from, size: erasedPerRequestMax });

  return {
    countExpired: listing(paging, {
      find: (_, { from }, { execute }) =>
        execute({ kind: 'ListExpired', nowS: nowS(), page: pageFrom(from) }),
      respond: ({ items, beforeS }) => ({
        years: yearsOf(items),
        recordedUpTo: timestampS(beforeS),
      }),
    }),
    eraseExpired: {
      check: paging.check,
      run: async (request, call) => {
        const by = actorOf(call, clock, request.reason);
        const { from } = paging.query(request, call.principal);
        const listed = await executeApart({ kind: 'ListExpired', nowS: by.atS, page: pageFrom(from) });
        const filingNos = listed.items.map(({ filingNo }) => filingNo);
        const erased = await call.execute({ kind: 'EraseFilings', by, filingNos });
        // A replay returns what the first call erased. What is listed now comes after that.
        const isReplay = erased[0] !== undefined && !filingNos.includes(erased[0].filingNo);
        const next = isReplay ? (from ?? 0) : listed.next;
        return {
          years: yearsOf(erased),
          nextPageToken: paging.token({ items: [], next }, request, call.principal),
        };
      },
    },
  } satisfies Partial<Operations<typeof MaintenanceService>>;
}

/** Counts filings by the year of their numbers. */
function yearsOf(filings: readonly ExpiredFiling[]): MessageInitShape<typeof ExpiredYearSchema>[] {
  const byYear = Map.groupBy(filings, ({ filingNo }) => yearOfFiling(filingNo));
  return Array.from(byYear, ([year, some]) => ({
    year,
    filings: some.length,
    records: some.reduce((sum, { records }) => sum + records, 0),
    firstFilingNo: some.at(0)?.filingNo ?? '',
    lastFilingNo: some.at(-1)?.filingNo ?? '',
  }));
}

/** The operations of MaintenanceService on the secrets that master keys encrypt. */
function createSecretOperations(dependencies: ServiceDependencies) {
  const { clock, nowS, keyRing, onWebhookChange, refreshLogKeys } = dependencies;
  const usesIn = async (execute: Execute) => countSeals(await Array.fromAsync(sealedKeys(execute)), nowS());

  return {
    reencryptSecrets: {
      run: async ({ reason }, call) => {
        await call.admit();
        const [{ name: masterKey }, ...others] = keyRing.masterKeys;
        const before = await usesIn(call.execute);
        const by = actorOf(call, clock, reason);
        const reencrypted = await reencryptSecrets(call.execute, keyRing, by);
        const after = await usesIn(call.execute);
        const unused = others.filter(({ name }) => !after.some((use) => use.masterKey === name));
        onWebhookChange();
        const unusedMasterKeys = unused.map(({ name }) => name);
        return { masterKey, reencrypted, before: [...before], after: [...after], unusedMasterKeys };
      },
    },
    rotateSecrets: {
      run: async ({ reason }, call) => {
        await call.admit();
        const by = actorOf(call, clock, reason);
        const replaced = await replaceLostSecrets({ ...dependencies, execute: call.execute }, by);
        onWebhookChange();
        await refreshLogKeys();
        return replaced;
      },
    },
  } satisfies Partial<Operations<typeof MaintenanceService>>;
}

/** How long the earlier keys sign besides a new one by default, in seconds. */
const overlapDefaultS = 30 * 86_400;
/** The longest delay of a new key and the longest overlap, in seconds. */
const longestS = 366 * 86_400;

/** The operations of MaintenanceService on the keys of the evidence log. */
function createLogKeyOperations({
  clock,
  nowS,
  keyRing,
  timestampS,
  executeApart,
  refreshLogKeys,
}: ServiceDependencies) {
  const shown = (key: LogKey) => ({
    vkey: key.vkey,
    addedAt: timestampS(key.addedAtS),
    signsFrom: timestampS(key.signsFromS ?? key.addedAtS),
    endsAt: timestampS(key.endsAtS),
    isSigning: signsAt(key, nowS()),
  });

  return {
    listLogKeys: {
      run: async (_, { execute }) => {
        const { keys } = await execute({ kind: 'GetLog' });
        const atS = nowS();
        const live = keys.filter((key) => !hasEnded(key, atS));
        // The order of keys that are both ahead, or both not, stays: newest first.
        const sorted = live.toSorted((one, other) => Number(isAhead(one, atS)) - Number(isAhead(other, atS)));
        return { keys: sorted.map(shown) };
      },
    },
    rotateLogKey: {
      check: ({ signsInSeconds, overlapSeconds = overlapDefaultS }) => [
        ...checkDelay('signsInSeconds', signsInSeconds),
        ...checkDelay('overlapSeconds', overlapSeconds),
      ],
      run: async ({ signsInSeconds, overlapSeconds = overlapDefaultS, reason }, call) => {
        const by = actorOf(call, clock, reason);
        const { origin } = await executeApart({ kind: 'GetLog' });
        if (origin === undefined)
          throw new ApiError(
            'NOT_FOUND',
            'The evidence log has no key yet: the first artseal serve creates it.',
          );
        const startS = by.atS + signsInSeconds;
        const rotated = await call.execute({
          ...{ kind: 'RotateLogKey', by, key: mintLogKey(origin, keyRing, by.atS) },
          endsAtS: startS + overlapSeconds,
          signsFromS: signsInSeconds > 0 ? startS : undefined,
        });
        await refreshLogKeys();
        const { keys } = await executeApart({ kind: 'GetLog' });
        const added = keys.find(({ vkey }) => vkey === rotated.vkey);
        return { ...(added && { key: shown(added) }), othersEndAt: timestampS(rotated.endsAtS) };
      },
    },
  } satisfies Partial<Operations<typeof MaintenanceService>>;
}

function checkDelay(field: string, seconds: number): Violation[] {
  if (seconds >= 0 && seconds <= longestS) return [];
  return [{ field, rule: `must be 0 to ${longestS}` }];
}

/** Keys and webhooks whose secrets one call replaces. Its response, and what a crash can lose of it, stays small. */
const replacedPerCallMax = 100;

type Response = MessageInitShape<typeof RotateSecretsResponseSchema>;

/** The secrets that were replaced. */
interface Replaced {
  readonly apiKeys: MessageInitShape<typeof RotateSecretsResponse_ApiKeySchema>[];
  readonly webhooks: MessageInitShape<typeof RotateSecretsResponse_WebhookSchema>[];
  readonly logKeys: MessageInitShape<typeof RotateSecretsResponse_LogKeySchema>[];
}

/** Replaces some of the secrets that no master key opens. Throws only if none was replaced: new secrets are returned once. */
export async function replaceLostSecrets(dependencies: IssuanceDependencies, by: Actor): Promise<Response> {
  const replaced: Replaced = { apiKeys: [], webhooks: [], logKeys: [] };
  let count = 0;
  try {
    for await (const replace of lostSecrets(dependencies, by, replaced)) {
      if (count === replacedPerCallMax) return { ...replaced, hasMore: true };
      await replace();
      count += 1;
    }
  } catch (error) {
    if (count === 0) throw error;
    // The next call meets the error again.
    return { ...replaced, hasMore: true };
  }
  return { ...replaced, hasMore: false };
}

/** Yields a function for each key or webhook with a lost secret. It replaces the secret, and adds the new one to `replaced`. */
async function* lostSecrets(
  dependencies: IssuanceDependencies,
  by: Actor,
  { apiKeys, webhooks, logKeys }: Replaced,
): AsyncIterable<() => Promise<unknown>> {
  const { execute, keyRing } = dependencies;
  const { rotateKey } = createIssuance(dependencies);
  const isLost = (sealed: readonly SealedKey[]) => findUnopened(sealed, keyRing, by.atS).length > 0;

  async function replaceKey({ keyId: replacedKeyId, caller }: StoredKey) {
    const { key, apiSecret } = await rotateKey(replacedKeyId, 0, by);
    apiKeys.push({ caller, replacedKeyId, keyId: key.keyId, apiKey: key.apiKey, apiSecret });
  }

  /** Disables a webhook whose URL is lost, and leaves it the origin of that URL: its owner must set it again. */
  async function replaceWebhook(
    { webhookId, caller, origin }: StoredWebhook,
    isUrlLost: boolean,
    isSecretLost: boolean,
  ) {
    const named = { webhookId, owner: undefined, by };
    if (isUrlLost) {
      const change = { url: sealUrl(keyRing, webhookId, origin), status: 'DISABLED' } as const;
      await execute({ kind: 'ChangeWebhook', ...named, change });
    }
    const secret = isSecretLost ? newWebhookSecret() : '';
    if (isSecretLost) {
      const sealedSecret = keyRing.seal(secret, webhookId);
      await execute({ kind: 'RotateWebhookSecret', ...named, sealedSecret, previousEndsAtS: by.atS });
    }
    webhooks.push({ caller, webhookId, secret, lostUrl: isUrlLost ? origin : '' });
  }

  /** Adds one key to the log and ends all others. */
  async function replaceLogKeys(origin: string, lost: readonly SealedKey[]) {
    const key = mintLogKey(origin, keyRing, by.atS);
    // First: after a crash between the two the log has a key that signs.
    await execute({ kind: 'RotateLogKey', by, key, endsAtS: by.atS });
    for (const { keyId } of lost) {
      await execute({ kind: 'EndLogKey', vkey: keyId, atS: by.atS });
      logKeys.push({ replacedVkey: keyId, vkey: key.vkey });
    }
  }

  for await (const key of allOf((page) => execute({ kind: 'ListKeys', page })))
    if (isLost([key])) yield () => replaceKey(key);
  for await (const webhook of allOf((page) => execute({ kind: 'ListWebhooks', owner: undefined, page }))) {
    const isUrlLost = isLost(sealedWebhookUrl(webhook));
    const isSecretLost = isLost(sealedWebhookSecrets(webhook));
    if (isUrlLost || isSecretLost) yield () => replaceWebhook(webhook, isUrlLost, isSecretLost);
  }
  const { origin, ...log } = await execute({ kind: 'GetLog' });
  const lost = findUnopened(sealedLogKeys(log), keyRing, by.atS);
  if (origin !== undefined && lost.length > 0) yield () => replaceLogKeys(origin, lost);
}
