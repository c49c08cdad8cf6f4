import {
  createDistribution,
  type Distribution,
  type DistributionData,
  durationBoundsS,
} from '../../lib/distribution.ts';
import {
  type FailureKind,
  failureKinds,
  type Institution,
  InstitutionFailure,
} from '../../payments/provider.ts';

/** What an institution is told or asked. */
export const institutionRequests = ['FREEZE', 'RELEASE', 'REFUND', 'CANCEL', 'LOOK_UP'] as const;
type InstitutionRequest = (typeof institutionRequests)[number];

/** Requests of one kind that were answered, by the seconds that it took, and how many failed, by how. */
export interface InstitutionFigure {
  readonly request: InstitutionRequest;
  readonly seconds: DistributionData;
  readonly failures: Readonly<Record<FailureKind, number>>;
}

/** Counts what an institution answers, and what it does not. */
export interface InstitutionFigures {
  /** The same institution, every request to which is counted. */
  observe(institution: Institution): Institution;
  data(): readonly InstitutionFigure[];
}

/** Requests of one kind, so far. */
interface Counted {
  readonly seconds: Distribution;
  readonly failures: Record<FailureKind, number>;
}

/** Nothing is counted so far. */
export function createInstitutionFigures(): InstitutionFigures {
  const counted = Object.fromEntries(institutionRequests.map((request) => [request, nothing()])) as Record<
    InstitutionRequest,
    Counted
  >;

  /** Counts a request once: when it is answered or fails, or when nobody waits for its answer any more. */
  async function count<T>(
    request: InstitutionRequest,
    signal: AbortSignal,
    ask: () => Promise<T>,
  ): Promise<T> {
    const { seconds, failures } = counted[request];
    const giveUp = () => {
      failures.UNANSWERED += 1;
    };
    signal.addEventListener('abort', giveUp, { once: true });
    const startedMs = performance.now();
    try {
      const answer = await ask();
      if (!signal.aborted) seconds.add((performance.now() - startedMs) / 1_000);
      return answer;
    } catch (error) {
      if (!signal.aborted) failures[error instanceof InstitutionFailure ? error.kind : 'FAILED'] += 1;
      throw error;
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }

  return {
    observe: (institution) => ({
      ...institution,
      instruct: (instruction, signal) =>
        count(instruction.kind, signal, () => institution.instruct(instruction, signal)),
      lookUp: (order, signal) => count('LOOK_UP', signal, () => institution.lookUp(order, signal)),
    }),
    data: () =>
      institutionRequests.map((request) => {
        const { seconds, failures } = counted[request];
        return { request, seconds: seconds.data(), failures: { ...failures } };
      }),
  };
}

const nothing = (): Counted => ({
  seconds: createDistribution(durationBoundsS),
  failures: Object.fromEntries(failureKinds.map((kind) => [kind, 0])) as Record<FailureKind, number>,
});
