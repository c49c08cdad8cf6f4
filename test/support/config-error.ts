import assert from 'node:assert/strict';
import { ConfigError } from '../../src/config/settings.ts';

/** For assert.throws: one fault of the settings, that names the variable. */
export const naming = (variable: string) => (error: unknown) => {
  assert.ok(error instanceof ConfigError, String(error));
  assert.ok(error.message.includes(variable), error.message);
  assert.doesNotMatch(error.message, /\n/);
  return true;
};
