import { isSecure } from '../domain/address.ts';
import type { Environment } from '../domain/caller.ts';
import { SettingError } from './provider.ts';

/** Reads a text of this form. Throws SettingError with the rule otherwise. */
export function matching(text: string, pattern: RegExp, rule: string): string {
  if (!pattern.test(text)) throw new SettingError(rule);
  return text;
}

/**
 * Reads the origin of an API: in production the provider's own alone. Throws SettingError, and what `environment` throws,
 * which is not asked before the rest is in order: so that is told as well.
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
