import { type Checkpoint, readCheckpoint } from '../formats/checkpoint.ts';
import { forked } from '../formats/failure.ts';
import type { ContentsState } from './contents.ts';
import { clockToleranceS } from './seen.ts';

/**
 * Something in a log that the auditor has to ask the operator about:
 * - FUTURE_DATED: leaves are dated after the clock of the auditor.
 * - FORK: the log continues another one, after the pin.
 * - ERASURE_UNNAMED: an erasure does not name its leaves, so their age cannot be checked.
 * - EXTENSION: the checkpoint has an unknown line.
 */
export interface Finding {
  readonly kind: 'FUTURE_DATED' | 'FORK' | 'ERASURE_UNNAMED' | 'EXTENSION';
  readonly what: string;
}

/** Returns the findings of an audit that found no contradiction. */
export function findingsOf(
  { extensions }: Checkpoint,
  contents: ContentsState,
  { pin, nowS }: { readonly pin?: Checkpoint | undefined; readonly nowS: number },
): readonly Finding[] {
  const future = futureLeaves(contents, nowS + clockToleranceS);
  const unnamed = contents.logEvents.filter(
    ({ event, detail }) => event === 'RECORDS_ERASED' && !('leaves' in JSON.parse(detail)),
  );
  const forks = forksOf(contents).filter(({ index }) => index >= (pin?.size ?? 0));
  return [
    ...some('FUTURE_DATED', future, `dated more than ${clockToleranceS} s after the clock of this machine`),
    ...forks.map(({ index, origin, previous }) => ({
      kind: 'FORK' as const,
      what: `leaf ${index} says that the log was forked and continues as ${JSON.stringify(origin)}, ${beforeFork(previous)}: ask its operator why`,
    })),
    ...some(
      'ERASURE_UNNAMED',
      unnamed.map(({ index }) => index),
      'an erasure that does not name the leaves that it erases',
    ),
    ...extensions.map((line) => ({
      kind: 'EXTENSION' as const,
      what: `the checkpoint has the extension line ${JSON.stringify(line)}, which is not checked here`,
    })),
  ];
}

/** Throws VerificationFailure FORKED if the last fork of the log has another name than the checkpoint. */
export function checkOrigin({ origin }: Checkpoint, contents: ContentsState): void {
  const last = forksOf(contents).at(-1);
  if (last === undefined || last.origin === origin) return;
  throw forked(
    `the checkpoint is of the log ${origin}, and leaf ${last.index} says that it continues as ${JSON.stringify(last.origin)}`,
  );
}

/** Makes one finding for many leaves. */
function some(kind: Finding['kind'], leaves: readonly number[], what: string): readonly Finding[] {
  const [first, ...others] = leaves;
  if (first === undefined) return [];
  const count = others.length === 0 ? '' : ` (and ${others.length} more)`;
  return [{ kind, what: `leaf ${first}${count} is ${what}` }];
}

/** Returns the records that were not erased, and the log events, that are dated after a time. */
function futureLeaves({ times, logEvents }: ContentsState, limitS: number): readonly number[] {
  const found = logEvents.filter(({ timeS }) => timeS > limitS).map(({ index }) => index);
  for (const [index, timeS] of times.entries()) if (timeS > limitS) found.push(index);
  return found.toSorted((one, other) => one - other);
}

function forksOf({ logEvents }: ContentsState) {
  return logEvents
    .filter(({ event }) => event === 'LOG_FORKED')
    .map(({ index, detail }) => {
      const { origin, previous } = JSON.parse(detail);
      return { index, origin: String(origin), previous: String(previous ?? '') };
    });
}

/** Describes the log before a fork. */
function beforeFork(previous: string): string {
  try {
    const { origin, size } = readCheckpoint(previous, 'it');
    return `after ${size} leaves of ${origin}`;
  } catch {
    return 'and names no earlier checkpoint';
  }
}
