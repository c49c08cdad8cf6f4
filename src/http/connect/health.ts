import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { createContextKey } from '@connectrpc/connect';
import {
  type Health,
  HealthCheckResponse_ServingStatus as Status,
} from '../../../gen/health/v1/health_pb.ts';
import { createConcurrencyLimit } from '../../api/concurrency-limit.ts';
import { ApiError } from '../../domain/reason.ts';
import type { Readiness } from '../../health/readiness.ts';
import { aborted } from './aborted.ts';

/** The dependencies of health. */
export interface HealthDependencies {
  /** Full names of the known services. The empty name is the process. */
  readonly services: readonly string[];
  readonly readiness: Pick<Readiness, 'check' | 'onChange'>;
  /** Aborted when the server begins to stop. */
  readonly draining: AbortSignal;
}

/** The connection of a call, for limits by connection. */
export const connectionKey = createContextKey<object>({});

/** Watch streams at the same time on one connection; a client needs one for each service that it calls. */
const watchesPerConnectionMax = 6;

/**
 * grpc.health.v1: SERVING while the process is ready, for the process and for each service. A Watch sends each change. When the
 * server begins to stop, it sends NOT_SERVING and ends.
 */
export function createHealth({
  services,
  readiness,
  draining,
}: HealthDependencies): ServiceImpl<typeof Health> {
  const names = ['', ...services];
  const watches = createConcurrencyLimit<object>({
    ofEach: watchesPerConnectionMax,
    tooMany: `At most ${watchesPerConnectionMax} Watch streams on one connection.`,
  });

  async function status(): Promise<Status> {
    const isReady = !draining.aborted && (await readiness.check()).length === 0;
    return isReady ? Status.SERVING : Status.NOT_SERVING;
  }

  async function* watchKnown(signal: AbortSignal) {
    let sent: Status | undefined;
    while (!signal.aborted) {
      // Before the check, so that no change is missed.
      const change = new AbortController();
      const ignore = readiness.onChange(() => change.abort());
      try {
        const now = await status();
        if (now !== sent) yield { status: now };
        sent = now;
        if (draining.aborted && now === Status.NOT_SERVING) return;
        await aborted(change.signal, draining, signal);
      } finally {
        ignore();
      }
    }
  }

  async function* watchUnknown(signal: AbortSignal) {
    yield { status: Status.SERVICE_UNKNOWN };
    await aborted(draining, signal);
  }

  const watch = ({ service }: { service: string }, { signal }: HandlerContext) =>
    names.includes(service) ? watchKnown(signal) : watchUnknown(signal);

  return {
    check: async ({ service }) => {
      if (names.includes(service)) return { status: await status() };
      throw new ApiError('NOT_FOUND', 'There is no such service; List returns all names.');
    },
    list: async () => {
      const now = await status();
      return { statuses: Object.fromEntries(names.map((name) => [name, { status: now }])) };
    },
    watch: async function* (request, context) {
      const leave = watches.enter(context.values.get(connectionKey));
      try {
        yield* watch(request, context);
      } finally {
        leave();
      }
    },
  };
}
