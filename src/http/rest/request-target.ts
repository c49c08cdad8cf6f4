import { ApiError } from '../../domain/reason.ts';

/** A parsed request target, decoded once. */
export interface RequestTarget {
  /** Path segments without their slashes. */
  readonly segments: readonly string[];
  /** Query parameters in the order sent. A stray & gives one without a name; a ? with nothing after it gives none. */
  readonly query: readonly (readonly [name: string, value: string])[];
}

/** The longest target, in bytes. */
export const targetBytesMax = 2_048;

const visibleAscii = /^[\x21-\x7e]*$/;
const dotSegment = /^(\.|%2e){1,2}$/i;
/**
 * A signed message has no separators, so a target that ends like a hash could also be read as a shorter target and the first
 * digits of a body's hash. With at most half a hash at the end of a target, nobody can find a body that fits.
 */
const endsLikeHash = /[0-9a-f]{33}$/;
const encodedSlashOrNul = /%(2f|00)/i;

/**
 * Parses a raw target. Throws BAD_REQUEST_TARGET for a target that a proxy could understand differently: absolute form, dot
 * segments, empty segments, encoded slashes, NUL, fragments, bad escapes.
 */
export function parseRequestTarget(raw: string): RequestTarget {
  const reject = (rule: string): never => {
    throw new ApiError('BAD_REQUEST_TARGET', `The request target ${rule}.`);
  };
  if (!raw.startsWith('/')) reject('must begin with / (origin form)');
  if (raw.length > targetBytesMax) reject(`must have at most ${targetBytesMax} bytes`);
  if (!visibleAscii.test(raw)) reject('must be ASCII; percent-encode everything else');
  if (/[#\\]/.test(raw)) reject('must not contain # or \\');
  const [path = '', ...rest] = raw.split('?');
  if (raw.includes('//')) reject('must not contain //');
  if (encodedSlashOrNul.test(raw)) reject('must not contain %2F or %00');
  if (endsLikeHash.test(raw)) reject('must not end in more than 32 lower-case hex digits');
  const segments = path.slice(1).split('/');
  if (segments.some((segment) => dotSegment.test(segment))) reject('must not contain dot segments');
  const decode = (text: string): string => {
    if (!text.includes('%')) return text;
    try {
      return decodeURIComponent(text);
    } catch {
      return reject('has an escape that is not % and two hex digits of UTF-8');
    }
  };
  const query = rest.join('?');
  const parameters = query === '' ? [] : query.split('&').map((pair) => splitPair(pair).map(decode));
  return {
    segments: segments.map(decode),
    query: parameters.map(([name = '', value = '']) => [name, value]),
  };
}

function splitPair(pair: string): [string, string] {
  const at = pair.indexOf('=');
  return at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)];
}
