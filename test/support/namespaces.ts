import { spawnSync } from 'node:child_process';
import { skipUnlessInstalled } from './installed.ts';

const root = 0;

/**
 * For the `skip` of a test in namespaces of its own: false if `unshare` runs this trial, else the reason. Many systems allow
 * it to root alone, so an ordinary user skips the test, and `npm run test:root` runs it as root. For root it throws instead
 * if ARTSEAL_TEST_REQUIRE_ALL is set. `programs` are those that the test needs besides, as `skipUnlessInstalled` takes them.
 */
export function skipUnlessUnshared(trial: readonly string[], ...programs: readonly string[]): string | false {
  const missing = skipUnlessInstalled('unshare', ...programs);
  if (missing !== false) return missing;
  const { status, stderr } = spawnSync('unshare', trial, { encoding: 'utf8' });
  if (status === 0) return false;
  const isRoot = process.getuid?.() === root;
  const reason = `the system refuses the namespaces${isRoot ? '' : '; as root: npm run test:root'} (${stderr.trim()})`;
  if (isRoot && process.env.ARTSEAL_TEST_REQUIRE_ALL) throw new Error(reason);
  return reason;
}
