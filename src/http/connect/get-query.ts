import { base64Decode } from '@bufbuild/protobuf/wire';
import { ApiError } from '../../domain/reason.ts';
import { shownName } from '../../lib/json/strict-json.ts';

/** The longest target of a Connect GET, path and query, in bytes. */
const targetBytesMax = 4_096;

/** The parameters of a Connect GET (Connect protocol, "Unary-Get-Request"). */
const parameters = ['connect', 'encoding', 'message', 'base64', 'compression'];

/**
 * Checks the target of a Connect GET. The library reads the query leniently: it replaces bytes that are not UTF-8 by U+FFFD, and
 * uses the first of repeated parameters. Throws BAD_REQUEST_TARGET, and UNSUPPORTED_MEDIA_TYPE for an unknown encoding.
 */
export function checkGetQuery(target: string): void {
  if (target.length > targetBytesMax) {
    throw rejected(
      `The target of a GET must have at most ${targetBytesMax} bytes; send a longer message with POST`,
    );
  }
  const values = new Map<string, string>();
  const query = target.split('?').slice(1).join('?');
  for (const part of query === '' ? [] : query.split('&')) {
    const [name = '', ...value] = part.split('=');
    if (!parameters.includes(name)) {
      const shown = name === '' ? 'a parameter without a name' : `the parameter ${shownName(name)}`;
      throw rejected(`The query has ${shown}; it takes ${parameters.join(', ')}`);
    }
    if (values.has(name)) throw rejected(`The query parameter ${name} is repeated`);
    values.set(name, decoded(name, value.join('=')));
  }
  const { connect = 'v1', encoding = '', message, base64 } = Object.fromEntries(values);
  if (connect !== 'v1') throw rejected('The query parameter connect must be v1');
  if (message === undefined) throw rejected('The query parameter message is required');
  if (base64 !== undefined && !(base64 === '1' && isBase64(message))) {
    throw rejected('The query parameter base64 must be 1, and message must be base64 then');
  }
  if (!['json', 'proto'].includes(encoding)) {
    throw new ApiError('UNSUPPORTED_MEDIA_TYPE', 'The query parameter encoding must be json or proto.');
  }
}

function rejected(what: string): ApiError {
  return new ApiError('BAD_REQUEST_TARGET', `${what}.`);
}

function decoded(name: string, value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    throw rejected(`The query parameter ${name} must be UTF-8, with escapes of two hex digits`);
  }
}

function isBase64(text: string): boolean {
  try {
    return base64Decode(text) !== undefined;
  } catch {
    return false;
  }
}
