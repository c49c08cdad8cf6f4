import { hostname } from 'node:os';
import { type Config, settings } from '../config/config.ts';
import { refuse } from '../config/settings.ts';
import type { KeyRing } from '../keys/key-ring.ts';
import { buildInfo } from '../packaging/build-info.ts';
import type { Instance } from '../store/instance-commands.ts';
import type { Execute } from '../store/store.ts';

/**
 * Enters this instance in the list of those that serve the database, or changes its master keys there. Throws ConfigError if its
 * settings do not fit those of another one.
 */
export async function joinInstances(
  config: Config,
  { masterKeys }: Pick<KeyRing, 'masterKeys'>,
  execute: Execute,
): Promise<void> {
  const { provider, logOrigin: origin, timeZone } = config;
  const facts = {
    ...{ host: hostname(), processId: process.pid, version: buildInfo.version },
    sinceS: Math.floor(performance.timeOrigin / 1_000),
    ...{ provider: provider.name, origin, timeZone },
    masterKeys: masterKeys.map(({ name, check }) => `${name} ${check}`),
  };
  for (const { facts: other } of await execute({ kind: 'JoinInstances', facts })) {
    const where = `as at the instance on ${other.host} (process ${other.processId})`;
    if (other.provider !== facts.provider) refuse(settings.provider, `must be ${other.provider}, ${where}`);
    if (!provider.movesMoney)
      refuse(
        settings.provider,
        `must not be ${facts.provider} while the instance on ${other.host} serves: ${facts.provider} works with one instance only`,
      );
    if (other.origin !== origin) refuse(settings.logOrigin, `must be ${other.origin ?? 'unset'}, ${where}`);
    if (other.timeZone !== timeZone) refuse(settings.timeZone, `must be ${other.timeZone}, ${where}`);
    const unknown = missingKey(facts, other) ?? missingKey(other, facts);
    if (unknown !== undefined)
      refuse(
        settings.masterKeyFile,
        `must have the master key ${unknown.split(' ')[0]} here and at the instance on ${other.host} (process ` +
          `${other.processId}) before one of the two encrypts with it`,
      );
  }
}

type Keys = Pick<Instance['facts'], 'masterKeys'>;

/** The master key that the first instance encrypts with, if the second one does not have it. */
const missingKey = ({ masterKeys: [first] }: Keys, { masterKeys }: Keys): string | undefined =>
  first === undefined || masterKeys.includes(first) ? undefined : first;
