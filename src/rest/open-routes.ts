import type { IncomingMessage } from 'node:http';
import { Refusal, unavailable } from '../domain/reason.ts';
import type { RequestEvent } from '../observe/request-event.ts';
import type { Readiness } from '../readiness/readiness.ts';
import { type Answer, jsonAnswer } from './envelope.ts';

/** What the routes answer that need no signature. */
export interface OpenRouteDependencies {
  /** The OpenAPI document. */
  readonly openApi: Uint8Array;
  /** Which process answers: the members of /version. */
  readonly version: {
    readonly version: string;
    /** 40 hex digits; empty where it is not known. */
    readonly commit: string;
    /** RFC 3339. */
    readonly startedAt: string;
  };
  readonly readiness: Pick<Readiness, 'check'>;
}

/** Finds how a request is answered that anybody may make; undefined for any other. The answer throws Refusal. */
export type OpenRoutes = (request: IncomingMessage, event: RequestEvent) => Promise<Answer> | undefined;

/** The paths that those ask who watch over the process, every few seconds. */
const probes: readonly string[] = ['/healthz', '/readyz'];
const methods = ['GET', 'HEAD'];

/** The routes without signature: the OpenAPI document, health and version. */
export function createOpenRoutes({ openApi, version, readiness }: OpenRouteDependencies): OpenRoutes {
  async function ready(): Promise<Answer> {
    const faults = await readiness.check();
    if (faults.length === 0) return jsonAnswer(200, { status: 'ok' });
    // The names alone: what is wrong with them is for the operator, who has it in the log.
    throw unavailable(`Not ready: ${faults.map(({ part }) => part).join(', ')}.`);
  }

  const answers = new Map<string, () => Answer | Promise<Answer>>([
    [
      '/openapi.yaml',
      () => ({ status: 200, headers: { 'Content-Type': 'application/yaml' }, body: openApi }),
    ],
    ['/healthz', () => jsonAnswer(200, { status: 'ok' })],
    ['/readyz', ready],
    ['/version', () => jsonAnswer(200, version)],
  ]);

  return (request, event) => {
    const { url = '' } = request;
    const queryAt = url.indexOf('?');
    const path = queryAt < 0 ? url : url.slice(0, queryAt);
    const answer = answers.get(path);
    if (answer === undefined) return undefined;
    event.operation = path;
    event.isProbe = probes.includes(path);
    return answerTo(request, answer);
  };
}

async function answerTo(
  { method = '', url = '' }: IncomingMessage,
  answer: () => Answer | Promise<Answer>,
): Promise<Answer> {
  if (!methods.includes(method)) {
    throw new Refusal('METHOD_NOT_ALLOWED', 'This route takes GET and HEAD.', { allow: methods });
  }
  if (/\?./.test(url)) throw new Refusal('VALIDATION_FAILED', 'This route takes no query parameters.');
  return answer();
}
