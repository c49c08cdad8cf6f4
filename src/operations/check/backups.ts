import type { Config } from '../../config/config.ts';
import { findProblem, readStanding } from '../backup/standing.ts';
import { type Finding, findingsOf } from './finding.ts';

/** Checks the regular backups by the rules of the server's log and metrics. */
export async function checkBackups(config: Config, nowMs: number): Promise<Finding> {
  const { ok, warning, fault } = findingsOf('backup');
  const { dataDir, environment, backups } = config;
  const terms = { dataDir, isRequired: environment === 'production', ...backups };
  const standing = await readStanding(terms);
  const problem = findProblem(standing, terms, nowMs);
  if (problem !== undefined) return problem.level === 'fault' ? fault(problem.text) : warning(problem.text);
  const { last } = standing;
  return last === undefined
    ? ok('none are taken regularly, which a sandbox does not need')
    : ok(`the last verified one was taken at ${last.takenAt}: ${last.file}`);
}
