import type { MessageInitShape } from '@bufbuild/protobuf';
import type {
  RotateSecretsResponse_ApiKeySchema,
  RotateSecretsResponse_LogKeySchema,
  RotateSecretsResponse_WebhookSchema,
  RotateSecretsResponseSchema,
} from '../../../gen/artseal/v1/maintenance_pb.ts';
import type { Actor } from '../../domain/audit-entry.ts';
import { newWebhookSecret } from '../../events/webhooks/signature.ts';
import { mintLogKey } from '../../evidence/log/signing-keys.ts';
import { createIssuance, type IssuanceDependencies } from '../../keys/issuance.ts';
import {
  findUnopened,
  type SealedKey,
  sealedLogKeys,
  sealedWebhookSecrets,
  sealedWebhookUrl,
  sealUrl,
} from '../../keys/sealed-secrets.ts';
import type { StoredKey } from '../../store/caller-commands.ts';
import { allOf } from '../../store/paging.ts';
import type { StoredWebhook } from '../../store/webhook-commands.ts';

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
