import type { RequestEvent } from '../../api/call-observer.ts';
import { ApiError } from '../../domain/reason.ts';
import { endWith } from '../listen/http1-server.ts';
import type { AnyRequest, AnyResponse } from '../listen/open-calls.ts';
import { filePageHeaders } from '../listen/page-headers.ts';
import { sendError } from './errors.ts';

/** Responds to a request for the console. Returns false for any other request. */
export type ConsolePage = (request: AnyRequest, response: AnyResponse, event: RequestEvent) => boolean;

const path = '/console';
const methods = ['GET', 'HEAD'];

/**
 * Serves the HTML of the console at /console. It needs no token, because it holds no secret: the page calls the RPCs with the token
 * that the operator gives it. Throws if the page states no Content-Security-Policy.
 */
export function createConsolePage(html: Uint8Array): ConsolePage {
  const headers = {
    ...filePageHeaders(html),
    'Content-Length': String(html.length),
    'Cross-Origin-Opener-Policy': 'same-origin',
  };

  return (request, response, event) => {
    if (request.url?.replace(/\?.*$/s, '') !== path) return false;
    event.operation = path;
    const { method = '' } = request;
    if (!methods.includes(method)) {
      const text = 'This route takes GET and HEAD.';
      sendError(request, response, event, new ApiError('METHOD_NOT_ALLOWED', text, { allow: methods }));
      return true;
    }
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    // Not at once: Node has not read the request to its end yet, and the connection would be closed after the response.
    queueMicrotask(() => (method === 'GET' ? endWith(response, html) : response.end()));
    request.resume();
    return true;
  };
}
