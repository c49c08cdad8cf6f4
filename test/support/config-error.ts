import assert from 'node:assert/strict';
import { ConfigRefused } from '../../src/config/settings.ts';

/** For assert.throws: one fault of the settings, that names the variable. */
export const naming = (variable: string) => (error: unknown) => {
  assert.ok(error instanceof ConfigRefused, String(error));
  assert.ok(error.message.includes(variable), error.message);
  assert.doesNotMatch(error.message, /\n/);
  return true;
};
