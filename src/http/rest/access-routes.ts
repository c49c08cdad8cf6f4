import type { IncomingMessage } from 'node:http';
import type { RequestEvent } from '../../api/call-observer.ts';
import { ApiError, unavailable } from '../../domain/reason.ts';
import type { Violation } from '../../domain/violation.ts';
import {
  claimedPage,
  type FormLimits,
  type FormTexts,
  formClosedPage,
  formPage,
  formTakenPage,
  linkPage,
  noLinkPage,
} from './access-pages.ts';
import type { Layout, Page } from './docs/layout.ts';
import { type HttpResponse, readBody, sentHeader } from './http-message.ts';

/** The path of one-time links to API keys; the token follows. */
export const accessPath = '/access/';
/** The path of the form. */
const formPath = '/register';

/** The public part of the access desk. */
export interface AccessDesk {
  /** Undefined if people cannot pre-register with a form. */
  readonly form: AccessForm | undefined;
  /** Returns the name of the platform whose key a link issues; undefined if it is not valid, or was used. Throws ApiError. */
  findLink(token: string): Promise<string | undefined>;
  /** Uses a link up, and returns the key; undefined if it is not valid, or was used. Throws ApiError. */
  claimLink(token: string): Promise<ClaimedAccess | undefined>;
}

/** The form with which people pre-register. */
export interface AccessForm {
  readonly limits: FormLimits;
  /** Takes what a person entered at a client address. Throws ApiError. */
  take(texts: FormTexts, client: string): Promise<FormResult>;
}

/** What became of a form. FULL: the form takes no more. LIMITED: it was sent too often. */
export type FormResult =
  | { readonly kind: 'TAKEN' | 'FULL' }
  | { readonly kind: 'INVALID'; readonly violations: readonly Violation[] }
  | { readonly kind: 'LIMITED'; readonly retryAfterS: number };

/** The key that a link issued. */
export interface ClaimedAccess {
  readonly platform: string;
  readonly apiKey: string;
  readonly apiSecret: string;
}

/** A route for people, who send it from a page. */
export interface AccessRoute {
  readonly operation: string;
  readonly methods: readonly string[];
  readonly mayBeUnavailable: true;
  respond(request: IncomingMessage, event: RequestEvent): Promise<HttpResponse>;
}

const methods = ['GET', 'HEAD', 'POST'];
const tokenPattern = /^[A-Za-z0-9_-]{43}$/;

/** Returns the function that finds the route of a path: the form, or a one-time link; undefined for any other path. */
export function createAccessRoutes(desk: AccessDesk, layout: Layout) {
  const { form } = desk;

  /** A page that no cache keeps, for the status of an error if there is one. */
  function shown(page: Page, event: RequestEvent, error?: ApiError, status = 200): HttpResponse {
    if (error !== undefined) event.apiError = error;
    const response = layout(page);
    return { ...response, status, headers: { ...response.headers, 'Cache-Control': 'no-store' } };
  }

  async function respondToForm(
    { take, limits }: AccessForm,
    request: IncomingMessage,
    event: RequestEvent,
  ): Promise<HttpResponse> {
    if (request.method !== 'POST') return shown(formPage(limits), event);
    const texts = await readForm(request);
    const result = await take(texts, event.client ?? '');
    switch (result.kind) {
      case 'TAKEN':
        return shown(formTakenPage(), event);
      case 'FULL':
        return shown(formClosedPage(), event, unavailable('The form takes no more registrations.'), 503);
      case 'INVALID': {
        const error = new ApiError('VALIDATION_FAILED', 'The form has fields that break their rules.');
        return shown(formPage(limits, texts, result.violations), event, error, 400);
      }
      case 'LIMITED': {
        const { retryAfterS } = result;
        const error = new ApiError('RATE_LIMITED', 'The form was sent too often.', { retryAfterS });
        const response = shown(formPage(limits, texts, [], retryAfterS), event, error, 429);
        response.headers['Retry-After'] = String(retryAfterS);
        return response;
      }
    }
  }

  /** A link is used up only by its button: programs that check the links of mails open them. */
  async function respondToLink(
    token: string,
    { method }: IncomingMessage,
    event: RequestEvent,
  ): Promise<HttpResponse> {
    const isToken = tokenPattern.test(token);
    if (isToken && method === 'POST') {
      const claimed = await desk.claimLink(token);
      if (claimed !== undefined) return shown(claimedPage(claimed), event);
    } else if (isToken) {
      const platform = await desk.findLink(token);
      if (platform !== undefined) return shown(linkPage(platform), event);
    }
    return shown(noLinkPage(), event, new ApiError('NOT_FOUND', 'The link is not valid.'), 404);
  }

  return (path: string): AccessRoute | undefined => {
    const shared = { methods, mayBeUnavailable: true } as const;
    if (path === formPath && form !== undefined) {
      const respond = (request: IncomingMessage, event: RequestEvent) => respondToForm(form, request, event);
      return { ...shared, operation: formPath, respond };
    }
    if (!path.startsWith(accessPath)) return undefined;
    const token = path.slice(accessPath.length);
    return {
      ...{ ...shared, operation: '/access' },
      respond: (request, event) => respondToLink(token, request, event),
    };
  };
}

const formType = /^application\/x-www-form-urlencoded[ \t]*(;.*)?$/i;

/** Reads what was entered. Spaces at the ends and line ends are not kept. Throws UNSUPPORTED_MEDIA_TYPE, BODY_TOO_LARGE. */
async function readForm(request: IncomingMessage): Promise<FormTexts> {
  const types = sentHeader(request, 'content-type');
  if (types.length !== 1 || !formType.test(types[0] ?? ''))
    throw new ApiError('UNSUPPORTED_MEDIA_TYPE', 'The form is sent as application/x-www-form-urlencoded.');
  const fields = new URLSearchParams(Buffer.from(await readBody(request)).toString());
  const read = (name: string) => (fields.get(name) ?? '').replaceAll(/\s+/g, ' ').trim();
  return {
    email: read('email'),
    name: read('name'),
    intendedUse: read('intendedUse'),
    tier: read('tier'),
  };
}
