import { ApiError } from '../../domain/reason.ts';
import { type Answer, jsonType } from './envelope.ts';

/** What is published of the evidence log. */
export interface PublicLog {
  /** The newest checkpoint, a signed note; undefined as long as there is none. */
  checkpoint(): string | undefined;
  /** The keys that it is verified with, in the format of signed notes. */
  verifierKeys(): readonly string[];
  /** The bytes of a tile by its path behind `tile/`; undefined where nothing of that name is published. */
  tile(path: string): Promise<Uint8Array | undefined>;
}

/** Evidence that its owner shares. */
export interface SharedEvidence {
  /** What the token of a link gives, JSON and a name for its file; undefined where it gives nothing any more. Throws ApiError. */
  open(token: string): Promise<{ readonly json: string; readonly file: string } | undefined>;
}

/** Where links to evidence lead to; the token follows. */
export const linkPath = '/evidence/';

/** How a path is answered that anybody may ask. */
export interface OpenRoute {
  /** As the log and the metrics call it: never what is secret of its path. */
  readonly operation: string;
  /** Whether it reads the store for anybody who asks. */
  readonly isForAnybody?: boolean;
  /** Headers of all its answers, errors included. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Throws ApiError. */
  answer(): Answer | Promise<Answer>;
}

/** Whoever checks the log may do so in a browser, on a page of their own. */
const forBrowsers = { 'Access-Control-Allow-Origin': '*' };
/** A checkpoint is soon followed by another. */
const mutable = { 'Content-Type': 'text/plain; charset=utf-8', 'Cache-Control': 'no-cache' };
/** A tile of one name always has the same bytes. */
const immutable = {
  'Content-Type': 'application/octet-stream',
  'Cache-Control': 'public, max-age=31536000, immutable',
};

/** The route of a path below /log/, as C2SP tlog-tiles has them; undefined for any other. */
export function logRoute(path: string, log: PublicLog): OpenRoute | undefined {
  const below = behind('/log/', path);
  if (below === undefined) return undefined;
  const route = { operation: path, headers: forBrowsers };
  if (below === 'checkpoint') return { ...route, answer: () => textAnswer(log.checkpoint()) };
  if (below === 'vkey') return { ...route, answer: () => textAnswer(lines(log.verifierKeys())) };
  const tile = behind('tile/', below);
  if (tile === undefined) return { ...route, operation: '/log', answer: nothingThere };
  const answer = async (): Promise<Answer> => {
    const body = (await log.tile(tile)) ?? nothingThere();
    return { status: 200, headers: { ...immutable }, body };
  };
  return { ...route, operation: '/log/tile', isForAnybody: true, answer };
}

/** The route of a link to evidence; undefined for any other path. */
export function evidenceRoute(path: string, shared: SharedEvidence): OpenRoute | undefined {
  const token = behind(linkPath, path);
  if (token === undefined) return undefined;
  const answer = async (): Promise<Answer> => {
    const evidence = await shared.open(token);
    if (evidence === undefined) {
      throw new ApiError(
        'NOT_FOUND',
        'This link has expired, was revoked, or is not whole: ask whoever gave it to you for another.',
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
  return { operation: '/evidence', isForAnybody: true, answer };
}

function textAnswer(body: string | undefined): Answer {
  return { status: 200, headers: { ...mutable }, body: body ?? nothingThere() };
}

function lines(texts: readonly string[]): string {
  return texts.map((text) => `${text}\n`).join('');
}

function nothingThere(): never {
  throw new ApiError('NOT_FOUND', 'Nothing of that name is published of the evidence log.');
}

/** What is behind a beginning; undefined if it is not the beginning. */
function behind(beginning: string, path: string): string | undefined {
  return path.startsWith(beginning) ? path.slice(beginning.length) : undefined;
}
