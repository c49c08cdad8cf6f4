import { userInfo } from 'node:os';
import { type Actor, checkReason } from '../domain/audit-entry.ts';
import { refuseViolations } from '../domain/violation.ts';
import { shownName } from '../lib/json/strict-json.ts';
import type { Terminal, Words } from './command.ts';

/** Whoever gives a command: the user of the machine, and why, as `--reason` says. Throws VALIDATION_FAILED. */
export function localActor(words: Words, { env }: Pick<Terminal, 'env'>): Actor {
  const reason = words.text('reason');
  refuseViolations(checkReason(reason ?? ''));
  return userActor(env, reason);
}

/**
 * The user of the machine who runs this process; behind sudo and artseal-admin, who called those, as the environment says: of
 * whoever may write to the database that is believed, as long as it is one line.
 */
export function userActor(env: NodeJS.ProcessEnv, reason: string | undefined): Actor {
  const { SUDO_USER: name = userName(), SUDO_UID: uid = process.getuid?.() } = env;
  const actor = `user ${shownName(name)} (${shownName(`${uid ?? 'no uid'}`)})`;
  return { actor, atS: Math.floor(Date.now() / 1000), reason };
}

/** In a container a user may have no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return 'unknown';
  }
}
