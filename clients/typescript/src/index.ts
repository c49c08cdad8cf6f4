export {
  type Client,
  createClient,
  type Input,
  type Output,
  type operations,
  type Schemas,
} from './client.ts';
export { ArtsealError, type ErrorDetails } from './error.ts';
export type { ClientOptions } from './transport.ts';
export {
  type ReceivedHeaders,
  type ReceivedWebhook,
  verifyWebhook,
  WebhookError,
  type WebhookErrorReason,
  type WebhookEvent,
} from './webhook.ts';
