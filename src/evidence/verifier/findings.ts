import { type Checkpoint, readCheckpoint } from './checkpoint.ts';
import type { ContentsState } from './contents.ts';
import { clockToleranceS } from './dating.ts';
import { VerificationFailure } from './failure.ts';

/**
 * Something in a log that an auditor has to ask about. None contradicts the log:
 * - FUTURE_DATED: leaves are dated after the clock of the auditor, by more than clocks may differ.
 * - FORK: the log goes on from another one, and the pin does not cover that yet.
 * - ERASURE_UNNAMED: an erasure does not name its leaves, so it cannot be checked that they were old enough.
 * - EXTENSION: the checkpoint has a line that is not known here.
 */
export interface Finding {
  readonly kind: 'FUTURE_DATED' | 'FORK' | 'ERASURE_UNNAMED' | 'EXTENSION';
  /** In words. */
  readonly what: string;
}

/** What an auditor has to ask about in a log that contradicts nothing. */
export function findingsOf(
  { extensions }: Checkpoint,
  contents: ContentsState,
  { pin, nowS }: { readonly pin?: Checkpoint | undefined; readonly nowS: number },
): readonly Finding[] {
  const future = futureLeaves(contents, nowS + clockToleranceS);
  const unnamed = contents.told.filter(
    ({ act, detail }) => act === 'RECORDS_ERASED' && !('leaves' in JSON.parse(detail)),
  );
  const forks = forksOf(contents).filter(({ index }) => index >= (pin?.size ?? 0));
  return [
    ...some('FUTURE_DATED', future, `dated more than ${clockToleranceS} s after the clock of this machine`),
    ...forks.map(({ index, origin, previous }) => ({
      kind: 'FORK' as const,
      what: `leaf ${index} says that the log was forked and goes on as ${JSON.stringify(origin)}, ${beforeFork(previous)}: ask its operator why`,
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

/** Throws VerificationFailure FORKED if the log was forked last under another name than that of the checkpoint. */
export function checkOrigin({ origin }: Checkpoint, contents: ContentsState): void {
  const last = forksOf(contents).at(-1);
  if (last === undefined || last.origin === origin) return;
  throw new VerificationFailure(
    'FORKED',
    `the checkpoint is of the log ${origin}, and leaf ${last.index} says that it goes on as ${JSON.stringify(last.origin)}`,
  );
}

/** One finding for many leaves. */
function some(kind: Finding['kind'], leaves: readonly number[], what: string): readonly Finding[] {
  const [first, ...others] = leaves;
  if (first === undefined) return [];
  const count = others.length === 0 ? '' : ` (and ${others.length} more)`;
  return [{ kind, what: `leaf ${first}${count} is ${what}` }];
}

/** The leaves that are dated after a time, as far as records are kept and events are told. */
function futureLeaves({ times, told }: ContentsState, limitS: number): readonly number[] {
  const found = told.filter(({ timeS }) => timeS > limitS).map(({ index }) => index);
  for (const [index, timeS] of times.entries()) if (timeS > limitS) found.push(index);
  return found.toSorted((one, other) => one - other);
}

function forksOf({ told }: ContentsState) {
  return told
    .filter(({ act }) => act === 'LOG_FORKED')
    .map(({ index, detail }) => {
      const { origin, previous } = JSON.parse(detail);
      return { index, origin: String(origin), previous: String(previous ?? '') };
    });
}

/** What a fork says of the log before it. */
function beforeFork(previous: string): string {
  try {
    const { origin, size } = readCheckpoint(previous, 'it');
    return `after ${size} leaves of ${origin}`;
  } catch {
    return 'and names no checkpoint from before';
  }
}
