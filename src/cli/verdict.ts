import {
  type FailureKind,
  readVerifierKey,
  VerificationFailure,
  type VerifierKey,
} from '../evidence/verifier/index.ts';
import { type Terminal, UsageError } from './command.ts';

export { instant } from '../evidence/verifier/index.ts';

/** A negative result: something does not verify, or the newest checkpoint of a log is too old. */
export interface Failure {
  readonly kind: FailureKind | 'TOO_OLD';
  readonly message: string;
}

/** Exit codes of negative results. 0 is verified, 1 undecided, 2 a wrong command line. */
const verdictCodes: Readonly<Record<Failure['kind'], number>> = {
  MALFORMED: 3,
  HASH_MISMATCH: 4,
  NOT_INCLUDED: 5,
  BAD_SIGNATURE: 6,
  FORKED: 7,
  TOO_OLD: 8,
};

/** The exit codes in the help of a command. */
export const verdictCodesHelp = [
  'Exit codes: 0 verified, 3 malformed, 4 the record is not what was logged, 5 not in the log, 6 no valid signature of a',
  'given key, 7 the log contradicts itself, others or the pin; 1 undecided, 2 the command line is wrong.',
];

/** Prints a negative result. Returns the exit code. */
export function printFailure({ kind, message }: Failure, isJson: boolean, terminal: Terminal): number {
  if (isJson) terminal.print(JSON.stringify({ verified: false, kind, what: message }));
  else terminal.printError(`NOT VERIFIED (${kind}): ${message}`);
  return verdictCodes[kind];
}

/** Reads the verifier keys of a repeated flag. A value may hold several, one per line. Throws UsageError. */
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
