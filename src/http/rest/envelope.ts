import { type ApiError, reasons } from '../../domain/reason.ts';

/** Where each error is explained; `#` and its code follow. */
export const errorsPath = '/docs/errors';

/** An answer before it is written to a connection; whoever passes it on may add headers. */
export interface Answer {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: string | Uint8Array;
}

/** The media type of every answer of an operation. */
export const jsonType = 'application/json';

/** An answer that is the JSON of an object. */
export function jsonAnswer(status: number, value: object, headers: Record<string, string> = {}): Answer {
  headers['Content-Type'] = jsonType;
  return { status, headers, body: JSON.stringify(value) };
}

/** The error envelope of an error, with the headers that its hints become. */
export function errorResponse({ reason, message, hints }: ApiError, requestId: string): Answer {
  const headers: Record<string, string> = { Link: `<${errorsPath}#${reason}>; rel="help"` };
  if (hints.retryAfterS !== undefined) headers['Retry-After'] = String(hints.retryAfterS);
  if (hints.serverTimeS !== undefined) headers['X-Server-Time'] = String(hints.serverTimeS);
  if (hints.allow !== undefined) headers.Allow = hints.allow.join(', ');
  return jsonAnswer(reasons[reason].http, { code: reason, message, requestId }, headers);
}
