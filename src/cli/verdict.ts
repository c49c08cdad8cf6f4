import {
  type FailureKind,
  readVerifierKey,
  VerificationFailure,
  type VerifierKey,
} from '../evidence/verifier/index.ts';
import { type Terminal, UsageError } from './command.ts';

/** What a command found wrong: what does not verify, or a log whose newest checkpoint is older than was asked for. */
export interface Failure {
  readonly kind: FailureKind | 'TOO_OLD';
  readonly message: string;
}

/** The exit codes of what does not verify; beside them 0 is good, 1 that it could not be found out, 2 a wrong command line. */
const verdictCodes: Readonly<Record<Failure['kind'], number>> = {
  MALFORMED: 3,
  HASH_MISMATCH: 4,
  NOT_INCLUDED: 5,
  BAD_SIGNATURE: 6,
  FORKED: 7,
  TOO_OLD: 8,
};

/** What the help of a command says of them. */
export const verdictCodesHelp = [
  'Exit codes: 0 good, 3 malformed, 4 the record is not what was logged, 5 not in the log, 6 no valid signature of a',
  'given key, 7 the log contradicts itself, others or the pin; 1 could not be found out, 2 the command line is wrong.',
];

/** Tells what does not verify; the exit code. */
export function tellFailure({ kind, message }: Failure, isJson: boolean, terminal: Terminal): number {
  if (isJson) terminal.print(JSON.stringify({ verified: false, kind, what: message }));
  else terminal.printError(`NOT VERIFIED (${kind}): ${message}`);
  return verdictCodes[kind];
}

/**
 * The verifier keys that a flag of the command line gave, each time one or, as `artseal evidence vkey` prints those that sign
 * together, a line each. Throws UsageError.
 */
export function readKeys(values: readonly string[], flag = '--key'): readonly VerifierKey[] {
  const vkeys = values.flatMap((value) => value.trim().split(/\s+/));
  return vkeys.map((vkey) => {
    try {
      return readVerifierKey(vkey);
    } catch (error) {
      if (!(error instanceof VerificationFailure)) throw error;
      throw new UsageError(`cannot use ${flag} ${vkey}: ${error.message}`);
    }
  });
}

/** Unix seconds in RFC 3339. */
export function instant(s: number): string {
  return new Date(s * 1000).toISOString().replace('.000Z', 'Z');
}
