import { type ApiError, reasons } from '../../domain/reason.ts';

/** The page that explains each error, under `#` and its code. */
export const errorsPath = '/docs/errors';

/** A response before it is written to a connection. Later steps may add headers. */
export interface HttpResponse {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: string | Uint8Array;
}

/** The media type of every response of an operation. */
export const jsonType = 'application/json';

/** A response with an object as JSON. */
export function jsonResponse(
  status: number,
  value: object,
  headers: Record<string, string> = {},
): HttpResponse {
  headers['Content-Type'] = jsonType;
  return { status, headers, body: JSON.stringify(value) };
}

/** The response for an error, with its hints as headers. */
export function errorResponse({ reason, message, hints }: ApiError, requestId: string): HttpResponse {
  const headers: Record<string, string> = { Link: `<${errorsPath}#${reason}>; rel="help"` };
  if (hints.retryAfterS !== undefined) headers['Retry-After'] = String(hints.retryAfterS);
  if (hints.serverTimeS !== undefined) headers['X-Server-Time'] = String(hints.serverTimeS);
  if (hints.allow !== undefined) headers.Allow = hints.allow.join(', ');
  return jsonResponse(reasons[reason].http, { code: reason, message, requestId }, headers);
}
