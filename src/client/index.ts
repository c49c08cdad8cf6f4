// What programs import as `artseal/client`: signed REST and webhooks for platforms, typed calls for internal systems.

export { Code, ConnectError, createClient } from '@connectrpc/connect';
export * from '../../gen/artseal/v1/admin_pb.ts';
export * from '../../gen/artseal/v1/escrow_pb.ts';
export * from '../../gen/artseal/v1/event_pb.ts';
export * from '../../gen/artseal/v1/evidence_pb.ts';
export * from '../../gen/artseal/v1/filing_pb.ts';
export * from '../../gen/artseal/v1/provenance_pb.ts';
export * from '../../gen/artseal/v1/webhook_pb.ts';
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
