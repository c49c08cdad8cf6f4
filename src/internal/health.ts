import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { createContextKey } from '@connectrpc/connect';
import { type Health, HealthCheckResponse_ServingStatus as Status } from '../../gen/health/v1/health_pb.ts';
import { Refusal } from '../domain/reason.ts';
import { aborted } from './aborted.ts';

/** What the health service works with. */
export interface HealthDependencies {
  /** Full names of the services that are asked about; the empty name is the process. */
  readonly services: readonly string[];
  /** Aborted when the process takes no more calls. */
  readonly draining: AbortSignal;
}

/** The connection that a call came over, for what is bounded by connection. */
export const connectionKey = createContextKey<object>({});

/** Watch streams at the same time on one connection; a client needs one for each service that it calls. */
const watchesPerConnectionMax = 6;

/**
 * grpc.health.v1: SERVING from when the process listens until it drains, for the process and for each service. A
 * Watch ends with NOT_SERVING when draining begins, so that it holds up no end.
 */
export function createHealth({ services, draining }: HealthDependencies): ServiceImpl<typeof Health> {
  const names = ['', ...services];
  const watches = new WeakMap<object, number>();
  const status = () => (draining.aborted ? Status.NOT_SERVING : Status.SERVING);

  async function* watch({ service }: { service: string }, context: HandlerContext) {
    const first = names.includes(service) ? status() : Status.SERVICE_UNKNOWN;
    yield { status: first };
    await aborted(draining, context.signal);
    if (first === Status.SERVING && draining.aborted) yield { status: Status.NOT_SERVING };
  }

  return {
    check: ({ service }) => {
      if (names.includes(service)) return { status: status() };
      throw new Refusal('NOT_FOUND', 'There is no such service; List names them all.');
    },
    list: () => ({ statuses: Object.fromEntries(names.map((name) => [name, { status: status() }])) }),
    watch: async function* (request, context) {
      const connection = context.values.get(connectionKey);
      const open = watches.get(connection) ?? 0;
      if (open >= watchesPerConnectionMax) {
        throw new Refusal(
          'RATE_LIMITED',
          `At most ${watchesPerConnectionMax} Watch streams on one connection.`,
          { retryAfterS: 1 },
        );
      }
      watches.set(connection, open + 1);
      try {
        yield* watch(request, context);
      } finally {
        watches.set(connection, (watches.get(connection) ?? 1) - 1);
      }
    },
  };
}
