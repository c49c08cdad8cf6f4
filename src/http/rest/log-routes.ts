import { ApiError } from '../../domain/reason.ts';
import { type HttpResponse, jsonType } from './envelope.ts';

/** The published part of the evidence log. */
export interface PublicLog {
  /** The newest checkpoint, a signed note; undefined before the first one. */
  checkpoint(): string | undefined;
  /** The keys that verify it, in the format of signed notes. */
  verifierKeys(): readonly string[];
  /** The bytes of a tile by its path after `tile/`; undefined if there is none. */
  tile(path: string): Promise<Uint8Array | undefined>;
}

/** Evidence that its owner shares by a link. */
export interface SharedEvidence {
  /** The evidence as JSON and a file name for it; undefined if the link is not valid. Throws ApiError. */
  open(token: string): Promise<{ readonly json: string; readonly file: string } | undefined>;
}

/** The path of evidence links; the token follows. */
export const linkPath = '/evidence/';

/** A route that needs no signature. */
export interface OpenRoute {
  /** Its name in log and metrics, without the token of an evidence link. */
  readonly operation: string;
  /** `RequestEvent.isForAnybody`. */
  readonly isForAnybody?: boolean;
  /** Headers of all its responses, errors included. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Throws ApiError. */
  respond(): HttpResponse | Promise<HttpResponse>;
}

/** Lets a page of any site read the log. */
const forBrowsers = { 'Access-Control-Allow-Origin': '*' };
const mutable = { 'Content-Type': 'text/plain; charset=utf-8', 'Cache-Control': 'no-cache' };
/** A tile never changes under its name. */
const immutable = {
  'Content-Type': 'application/octet-stream',
  'Cache-Control': 'public, max-age=31536000, immutable',
};

/** The route of a path below /log/ (C2SP tlog-tiles); undefined for any other path. */
export function logRoute(path: string, log: PublicLog): OpenRoute | undefined {
  const below = after('/log/', path);
  if (below === undefined) return undefined;
  const route = { operation: path, headers: forBrowsers };
  if (below === 'checkpoint') return { ...route, respond: () => textResponse(log.checkpoint()) };
  if (below === 'vkey') return { ...route, respond: () => textResponse(lines(log.verifierKeys())) };
  const tile = after('tile/', below);
  if (tile === undefined) return { ...route, operation: '/log', respond: notPublished };
  const respond = async (): Promise<HttpResponse> => {
    const body = (await log.tile(tile)) ?? notPublished();
    return { status: 200, headers: { ...immutable }, body };
  };
  return { ...route, operation: '/log/tile', isForAnybody: true, respond };
}

/** The route of an evidence link; undefined for any other path. */
export function evidenceRoute(path: string, shared: SharedEvidence): OpenRoute | undefined {
  const token = after(linkPath, path);
  if (token === undefined) return undefined;
  const respond = async (): Promise<HttpResponse> => {
    const evidence = await shared.open(token);
    if (evidence === undefined) {
      throw new ApiError(
        'NOT_FOUND',
        'This link has expired, was revoked, or is incomplete. Ask the person who sent it for a new one.',
      );
    }
    const { json, file } = evidence;
    const disposition = `attachment; filename="${file}"`;
    return {
      status: 200,
      headers: { 'Content-Type': jsonType, 'Content-Disposition': disposition },
      body: json,
    };
  };
  return { operation: '/evidence', isForAnybody: true, respond };
}

function textResponse(body: string | undefined): HttpResponse {
  return { status: 200, headers: { ...mutable }, body: body ?? notPublished() };
}

function lines(texts: readonly string[]): string {
  return texts.map((text) => `${text}\n`).join('');
}

function notPublished(): never {
  throw new ApiError('NOT_FOUND', 'Nothing of that name is published of the evidence log.');
}

/** The part of a path after a prefix; undefined if it does not begin with the prefix. */
function after(prefix: string, path: string): string | undefined {
  return path.startsWith(prefix) ? path.slice(prefix.length) : undefined;
}
