import {
  createDistribution,
  type Distribution,
  type DistributionData,
  durationBoundsS,
} from '../../lib/distribution.ts';
import {
  type FailureKind,
  failureKinds,
  type PaymentProvider,
  ProviderFailure,
} from '../../payments/provider.ts';

/** The kinds of requests to a provider. */
export const providerRequests = ['FREEZE', 'RELEASE', 'REFUND', 'CANCEL', 'LOOK_UP'] as const;
type ProviderRequest = (typeof providerRequests)[number];

/** Requests of one kind that were answered, by the seconds that it took, and how many failed, by how. */
export interface ProviderMetric {
  readonly request: ProviderRequest;
  readonly seconds: DistributionData;
  readonly failures: Readonly<Record<FailureKind, number>>;
}

/** Counts what a provider answers, and what it does not. */
export interface ProviderMetrics {
  /** The same provider, every request to which is counted. */
  observe(provider: PaymentProvider): PaymentProvider;
  data(): readonly ProviderMetric[];
}

/** Requests of one kind, so far. */
interface Counted {
  readonly seconds: Distribution;
  readonly failures: Record<FailureKind, number>;
}

/** Nothing is counted so far. */
export function createProviderMetrics(): ProviderMetrics {
  const counted = Object.fromEntries(providerRequests.map((request) => [request, nothing()])) as Record<
    ProviderRequest,
    Counted
  >;

  /** Counts a request once: when it is answered or fails, or when nobody waits for its answer any more. */
  async function count<T>(request: ProviderRequest, signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
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
      if (!signal.aborted) failures[error instanceof ProviderFailure ? error.kind : 'FAILED'] += 1;
      throw error;
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }

  return {
    observe: (provider) => ({
      ...provider,
      instruct: (instruction, signal) =>
        count(instruction.kind, signal, () => provider.instruct(instruction, signal)),
      lookUp: (order, signal) => count('LOOK_UP', signal, () => provider.lookUp(order, signal)),
    }),
    data: () =>
      providerRequests.map((request) => {
        const { seconds, failures } = counted[request];
        return { request, seconds: seconds.data(), failures: { ...failures } };
      }),
  };
}

const nothing = (): Counted => ({
  seconds: createDistribution(durationBoundsS),
  failures: Object.fromEntries(failureKinds.map((kind) => [kind, 0])) as Record<FailureKind, number>,
});
