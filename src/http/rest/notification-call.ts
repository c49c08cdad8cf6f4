import type { IncomingMessage } from 'node:http';
import type { RequestEvent } from '../../api/request-event.ts';
import { ApiError } from '../../domain/reason.ts';
import { readBody } from './body.ts';
import { type Answer, jsonAnswer } from './envelope.ts';

/** Where the payment provider sends its notifications. */
export const notificationPath = '/payment/notifications';

/** The notifications of the payment provider. */
export interface Notifications {
  /** The one that they come with. */
  readonly method: 'GET' | 'POST';
  /** Takes one as it came over the wire, verified by whoever sent it. Throws ApiError. */
  take(sent: {
    readonly method: string;
    /** Behind the question mark of its target; '' if there is none. It can be the secret that proves it. */
    readonly query: string;
    readonly headers: NodeJS.Dict<string[]>;
    readonly body: Uint8Array;
  }): Promise<void>;
}

/** Whether a request target is that of notifications: those that come with GET have all that they say in its query. */
export const isNotification = (target: string | undefined, { method }: Notifications): boolean =>
  target === notificationPath || (method === 'GET' && target?.startsWith(`${notificationPath}?`) === true);

/** Answers a request to `notificationPath`: as soon as the notification is stored, before anything comes of it. */
export async function notificationCall(
  request: IncomingMessage,
  event: RequestEvent,
  { method, take }: Notifications,
): Promise<Answer> {
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
  return jsonAnswer(200, { received: true });
}
