import { urlSealId } from '../domain/webhook.ts';
import type { SealedUrl, StoredWebhook } from '../store/webhook-commands.ts';
import type { KeyRing } from './key-ring.ts';

/** What the URL of an endpoint is read from. */
type WebhookUrl = Pick<StoredWebhook, 'webhookId' | 'sealedUrl'>;

/** Encrypts the URL of an endpoint. */
export function sealUrl(keyRing: Pick<KeyRing, 'seal'>, webhookId: string, url: string): SealedUrl {
  return { origin: new URL(url).origin, sealedUrl: keyRing.seal(url, urlSealId(webhookId)) };
}

/** The URL of an endpoint. Throws SecretNotOpened. */
export function openUrl(keyRing: Pick<KeyRing, 'open'>, { webhookId, sealedUrl }: WebhookUrl): string {
  return keyRing.open(sealedUrl, urlSealId(webhookId)).export().toString();
}
