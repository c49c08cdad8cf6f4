import { acceptedFrom, rejectedThroughS } from '../../api/nonce-gap.ts';
import type { Restoration } from '../../store/restoration-commands.ts';
import { type Finding, findingsOf } from './finding.ts';

/** Checks whether signed calls are rejected since a restore; returns nothing if the database was never restored. */
export function checkRestoration(restoration: Restoration | undefined, nowMs: number): Finding[] {
  const { ok, warning, fault } = findingsOf('restored');
  if (restoration === undefined) return [];
  const { servedAtS } = restoration;
  if (servedAtS === undefined)
    return [
      warning(
        'it was restored from a backup and not served since: signed calls are rejected for five minutes after the first ' +
          'start; serve no other folder that was restored',
      ),
    ];
  const untilS = rejectedThroughS(servedAtS);
  if (Math.floor(nowMs / 1_000) > untilS)
    return [ok('it was restored from a backup, and signed calls are accepted again')];
  return [
    fault(
      `signed calls are rejected until ${acceptedFrom(untilS)}, since it was restored from a backup: wait`,
    ),
  ];
}
