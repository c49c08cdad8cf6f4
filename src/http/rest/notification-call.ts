import type { IncomingMessage } from 'node:http';
import type { RequestEvent } from '../../api/request-event.ts';
import { ApiError } from '../../domain/reason.ts';
import { readBody } from './body.ts';
import { type HttpResponse, jsonResponse } from './envelope.ts';

/** The path to which the payment provider sends its notifications. */
export const notificationPath = '/payment/notifications';

/** The notifications of the payment provider. */
export interface Notifications {
  readonly method: 'GET' | 'POST';
  /** Verifies and stores a notification. Throws ApiError. */
  take(sent: {
    readonly method: string;
    /** The query of the target; '' if there is none. It can hold the secret that authenticates the notification. */
    readonly query: string;
    readonly headers: NodeJS.Dict<string[]>;
    readonly body: Uint8Array;
  }): Promise<void>;
}

/** Whether a request target is that of notifications. One sent with GET has its data in the query. */
export const isNotification = (target: string | undefined, { method }: Notifications): boolean =>
  target === notificationPath || (method === 'GET' && target?.startsWith(`${notificationPath}?`) === true);

/** Responds to a notification as soon as it is stored, before it is processed. */
export async function notificationCall(
  request: IncomingMessage,
  event: RequestEvent,
  { method, take }: Notifications,
): Promise<HttpResponse> {
  event.operation = 'payment notification';
  if (request.method !== method) {
    throw new ApiError('METHOD_NOT_ALLOWED', `This route takes ${method}.`, { allow: [method] });
  }
  const { url = '', headersDistinct: headers } = request;
  const query = url.slice(notificationPath.length + 1);
  try {
    await take({ method, query, headers, body: await readBody(request) });
  } catch (error) {
    event.isForOperator = error instanceof ApiError && error.reason === 'VALIDATION_FAILED';
    throw error;
  }
  return jsonResponse(200, { received: true });
}
