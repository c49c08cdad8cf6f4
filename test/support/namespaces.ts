import { spawnSync } from 'node:child_process';
import { skipUnlessInstalled } from './installed.ts';

const root = 0;

/**
 * For the `skip` of a test in namespaces of its own: false if `unshare` runs this trial, else the reason. Many systems allow
 * it only to root: `npm run test:root` runs these tests. Throws for root if ARTSEAL_TEST_REQUIRE_ALL is set. `programs` are
 * others that the test needs.
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
