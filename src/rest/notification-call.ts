import type { IncomingMessage } from 'node:http';
import { Refusal } from '../domain/reason.ts';
import type { RequestEvent } from '../observe/request-event.ts';
import { readBody } from './body.ts';
import { type Answer, jsonAnswer } from './envelope.ts';

/** Where the payment institution sends its notifications. */
export const notificationPath = '/payment/notifications';

/** Takes a notification as it came over the wire, verified by whoever sent it. Throws Refusal. */
export type TakeNotification = (sent: {
  readonly method: string;
  /** Behind the question mark of its target; '' if there is none. */
  readonly query: string;
  readonly headers: NodeJS.Dict<string[]>;
  readonly body: Uint8Array;
}) => Promise<void>;

/** Answers a request to `notificationPath`: as soon as the notification is stored, before anything comes of it. */
export async function notificationCall(
  request: IncomingMessage,
  event: RequestEvent,
  take: TakeNotification,
): Promise<Answer> {
  event.operation = 'payment notification';
  if (request.method !== 'POST') {
    throw new Refusal('METHOD_NOT_ALLOWED', 'This route takes POST.', { allow: ['POST'] });
  }
  const { method, url = '', headersDistinct: headers } = request;
  const query = url.slice(notificationPath.length + 1);
  try {
    await take({ method, query, headers, body: await readBody(request) });
  } catch (error) {
    event.isForOperator = error instanceof Refusal && error.reason === 'VALIDATION_FAILED';
    throw error;
  }
  return jsonAnswer(200, { received: true });
}
