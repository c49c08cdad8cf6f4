// What programs import as `artseal/client`: signed REST and webhooks for platforms, typed calls for internal systems.

export { Code, ConnectError, createClient } from '@connectrpc/connect';
export * from '../../gen/artseal/v1/index.ts';
export { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from '../../gen/google/rpc/error_details_pb.ts';
export { createRestClient, type RestClient } from './rest.ts';
export { type ApiCredentials, signedHeaders, type Unsigned } from './sign.ts';
export { createTypedTransport } from './typed.ts';
export {
  type ReceivedHeaders,
  type ReceivedWebhook,
  verifyWebhook,
  WebhookError,
  type WebhookErrorReason,
  type WebhookEvent,
} from './webhook.ts';
