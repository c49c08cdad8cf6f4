import assert from 'node:assert/strict';
import { ConfigError } from '../../src/config/settings.ts';

/** For assert.throws: a ConfigError with one fault, which names the variable. */
export const naming = (variable: string) => (error: unknown) => {
  assert.ok(error instanceof ConfigError, String(error));
  assert.ok(error.message.includes(variable), error.message);
  assert.doesNotMatch(error.message, /\n/);
  return true;
};
