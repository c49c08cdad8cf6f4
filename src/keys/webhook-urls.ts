import { urlSealId } from '../domain/webhook.ts';
import { allOf } from '../store/paging.ts';
import type { Execute } from '../store/store.ts';
import type { SealedUrl, StoredWebhook } from '../store/webhook-commands.ts';
import type { KeyRing } from './key-ring.ts';

/** What the URL of an endpoint is read from. */
type WebhookUrl = Pick<StoredWebhook, 'webhookId' | 'origin' | 'sealedUrl'>;

/** Seals the URL of an endpoint. */
export function sealUrl(keyRing: Pick<KeyRing, 'seal'>, webhookId: string, url: string): SealedUrl {
  return { origin: new URL(url).origin, sealedUrl: keyRing.seal(url, urlSealId(webhookId)) };
}

/** The URL of an endpoint. Throws SecretNotOpened. */
export function openUrl(
  keyRing: Pick<KeyRing, 'open'>,
  { webhookId, origin, sealedUrl }: WebhookUrl,
): string {
  return sealedUrl === null ? origin : keyRing.open(sealedUrl, urlSealId(webhookId)).export().toString();
}

/** Endpoints whose URLs are sealed in one unit, at most. */
const sealedPerUnit = 200;

/**
 * Seals the URLs of endpoints that are stored as plain text, which is so after an upgrade. `rewrite` then gets the plain text out
 * of the files. What is cut off is done by the next process that opens the store.
 */
export async function sealPlainUrls(
  execute: Execute,
  keyRing: KeyRing,
  rewrite: () => Promise<boolean>,
): Promise<void> {
  if (!(await execute({ kind: 'HasPlainUrls' }))) return;
  const plain: (SealedUrl & Pick<StoredWebhook, 'webhookId'>)[] = [];
  for await (const webhook of allOf((page) => execute({ kind: 'ListWebhooks', owner: undefined, page }))) {
    const { webhookId, origin: url, sealedUrl } = webhook;
    if (sealedUrl === null) plain.push({ webhookId, ...sealUrl(keyRing, webhookId, url) });
  }
  for (let done = 0; done < plain.length; done += sealedPerUnit)
    await execute({ kind: 'SealUrls', urls: plain.slice(done, done + sealedPerUnit) });
  if (await rewrite()) await execute({ kind: 'ForgetPlainUrls' });
}
