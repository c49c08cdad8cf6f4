import { isSecure } from '../domain/address.ts';
import type { Environment } from '../domain/caller.ts';
import { SettingError } from './provider.ts';

/** Returns the text if it matches. Throws SettingError with the rule otherwise. */
export function matching(text: string, pattern: RegExp, rule: string): string {
  if (!pattern.test(text)) throw new SettingError(rule);
  return text;
}

/**
 * Reads the origin of an API, which must be the provider's own in production. Throws SettingError, and what `environment`
 * throws; the other rules are checked first, so that their errors are reported too.
 */
export function readOrigin(text: string, own: string, environment: () => Environment): string {
  const url = URL.parse(text);
  if (url === null || url.href !== `${url.origin}/`) {
    throw new SettingError(`must be an origin such as ${own}, without a path`);
  }
  if (!isSecure(url)) throw new SettingError('must be https, or http on a loopback address');
  if (environment() === 'production' && url.origin !== own) {
    throw new SettingError(`must be ${own} in production`);
  }
  return url.origin;
}
