import { createDistribution, type DistributionData, durationBoundsS } from '../../lib/distribution.ts';
import {
  type FailureKind,
  failureKinds,
  type PaymentProvider,
  ProviderFailure,
} from '../../payments/provider.ts';

/** The kinds of requests to a provider. */
const providerRequests = ['FREEZE', 'RELEASE', 'REFUND', 'CANCEL', 'LOOK_UP'] as const;
type ProviderRequest = (typeof providerRequests)[number];

/** The durations of the requests of one kind, and their failures by kind. */
export interface ProviderMetric {
  readonly request: ProviderRequest;
  readonly seconds: DistributionData;
  readonly failures: Readonly<Record<FailureKind, number>>;
}

/** Counts the requests to a provider, from zero. */
export function createProviderMetrics() {
  const counted = Object.fromEntries(providerRequests.map((request) => [request, newCounted()])) as Record<
    ProviderRequest,
    ReturnType<typeof newCounted>
  >;

  /** Counts a request once: when it succeeds, fails or is aborted. */
  async function count<T>(request: ProviderRequest, signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
    const { seconds, failures } = counted[request];
    const abort = () => {
      failures.UNANSWERED += 1;
    };
    signal.addEventListener('abort', abort, { once: true });
    const startedMs = performance.now();
    try {
      const answer = await ask();
      if (!signal.aborted) seconds.add((performance.now() - startedMs) / 1_000);
      return answer;
    } catch (error) {
      if (!signal.aborted) failures[error instanceof ProviderFailure ? error.kind : 'FAILED'] += 1;
      throw error;
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  return {
    /** Wraps a provider: each request is counted. */
    observe: (provider: PaymentProvider): PaymentProvider => ({
      ...provider,
      instruct: (instruction, signal) =>
        count(instruction.kind, signal, () => provider.instruct(instruction, signal)),
      lookUp: (order, signal) => count('LOOK_UP', signal, () => provider.lookUp(order, signal)),
    }),
    data: (): readonly ProviderMetric[] =>
      providerRequests.map((request) => {
        const { seconds, failures } = counted[request];
        return { request, seconds: seconds.data(), failures: { ...failures } };
      }),
  };
}

const newCounted = () => ({
  seconds: createDistribution(durationBoundsS),
  failures: Object.fromEntries(failureKinds.map((kind) => [kind, 0])) as Record<FailureKind, number>,
});
