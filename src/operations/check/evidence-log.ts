import { type Config, settings } from '../../config/config.ts';
import { faultOf } from '../../config/settings.ts';
import { checkLogName, readAgreed } from '../../evidence/log/agreement.ts';
import { createCheckpointFile } from '../../evidence/log/checkpoint-file.ts';
import { requiredOrigin } from '../../evidence/log/origin.ts';
import type { LogNames, LogState } from '../../store/log-commands.ts';
import type { ReadTree } from '../../store/store.ts';
import { type Finding, findingsOf, messageOf } from './finding.ts';

/** How many faults of records the finding names; `artseal backup verify` names all. */
const namedMax = 3;

/**
 * Checks that the published checkpoint and the database agree, as the start and each signing do. `faults` names the records
 * that differ from the log.
 */
export async function checkLog(
  config: Config,
  state: LogState,
  read: ReadTree,
  faults: readonly string[],
): Promise<Finding> {
  const published = await checkPublished(config, state, read);
  if (faults.length === 0) return published;
  const named = faults.slice(0, namedMax).join('; ');
  const more = faults.length > namedMax ? ` (${faults.length} faults)` : '';
  const text = `${named}${more}: see docs/operate/incidents/record-changed.md`;
  return findingsOf('evidence log').fault(
    published.level === 'fault' ? `${published.text}. Besides: ${text}` : text,
  );
}

/** Returns a fault if a production has no name of its log in the settings. */
export function checkOrigin({ environment, logOrigin }: Config, names: LogNames): Finding[] {
  if (environment !== 'production' || logOrigin !== undefined) return [];
  const text = faultOf(settings.logOrigin, requiredOrigin(names)).replace(/\.$/, '');
  return [findingsOf('evidence log').fault(text)];
}

async function checkPublished(config: Config, state: LogState, read: ReadTree): Promise<Finding> {
  const { dataDir, logOrigin } = config;
  const { ok, fault } = findingsOf('evidence log');
  try {
    const [missing] = checkOrigin(config, state);
    if (missing !== undefined) return missing;
    checkLogName(state, logOrigin);
    const file = createCheckpointFile(dataDir);
    const published = await readAgreed({ execute: read, state, file, last: undefined });
    const { origin: name } = state;
    if (name === undefined) return ok('it gets its name and its key at the next start');
    if (published === undefined) return ok(`${name} has its first checkpoint after the next start`);
    const { size } = await read({ kind: 'GetTree' });
    return ok(`${name}: of ${size} leaves ${published.size} are published, as ${file.path} has it`);
  } catch (error) {
    return fault(messageOf(error).replace(/\.$/, ''));
  }
}
