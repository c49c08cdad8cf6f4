import type { TestContext } from 'node:test';
import { createWorld, refused, type SeenRequest } from './mangopay-world.ts';
import { type Answer, type ArrivedRequest, type RequestFault, startStandIn } from './stand-in.ts';

/** What goes wrong with a request. */
export type Fault =
  | RequestFault
  /** Rejected before anything else is checked; the key stays free: 401, 429, 503. */
  | { readonly status: number }
  /** Rejected with the key used up: 400, 403. */
  | { readonly apiError: number };

/** Mangopay as far as this project uses it, over HTTP and with a memory. */
export type MangopayStandIn = Awaited<ReturnType<typeof startMangopayStandIn>>;

interface UsedKey {
  answer: Answer | undefined;
}

const keyPattern = /^[A-Za-z0-9-]{16,36}$/;
/** The lifetime of a token in Mangopay's sandbox, in seconds. */
const tokenLifeS = 1_200;

/** Starts a stand-in, closed after the test. */
export async function startMangopayStandIn(test: Pick<TestContext, 'after'>) {
  const clientId = 'artseal-test';
  const apiKey = 'standin-api-key-0123456789';
  const world = createWorld();
  const tokens = new Set<string>();
  const keys = new Map<string, UsedKey>();
  let isRevoked = false;
  let issued = 0;

  function issueToken(headers: ArrivedRequest['headers'], body: string): Answer {
    const basic = `Basic ${Buffer.from(`${clientId}:${apiKey}`).toString('base64')}`;
    if (isRevoked || headers.authorization !== basic)
      return { status: 401, body: { error: 'invalid_client' } };
    if (body !== 'grant_type=client_credentials') return { status: 400, body: { error: 'invalid_request' } };
    issued += 1;
    const access_token = `token-${issued}`;
    tokens.add(access_token);
    return { status: 200, body: { access_token, token_type: 'Bearer', expires_in: tokenLifeS } };
  }

  function read({ text, ...arrived }: ArrivedRequest): SeenRequest | Answer {
    const { method, path, headers } = arrived;
    if (`${method} ${path}` === 'POST /v2.01/oauth/token') return issueToken(headers, text);
    const prefix = `/v2.01/${clientId}`;
    const inside = path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : path;
    return { ...arrived, path: inside, body: text === '' ? {} : JSON.parse(text) };
  }

  function respond(seen: SeenRequest, fault: Fault | undefined): Answer | Promise<Answer> {
    if (typeof fault === 'object' && 'status' in fault) return refused(fault.status, 'fault');
    const bearer = /^Bearer (.+)$/.exec(seen.headers.authorization ?? '')?.[1] ?? '';
    if (isRevoked || !tokens.has(bearer)) return refused(401, 'invalid_token');
    return once(seen, fault);
  }

  /** Carries a request out unless its key was used before, with whatever result. */
  async function once(seen: SeenRequest, fault: Fault | undefined): Promise<Answer> {
    const { method, path, idempotencyKey: key } = seen;
    const stored = /^\/responses\/(.+)$/.exec(path)?.[1];
    if (method === 'GET' && stored !== undefined) return storedAnswer(keys.get(stored));
    if (method !== 'POST' || key === undefined) return world.carryOut(seen);
    if (!keyPattern.test(key)) return refused(400, 'param_error', 'Idempotency-Key');
    if (keys.has(key)) return refused(409, 'idempotent_creation_conflict');
    const entry: UsedKey = { answer: undefined };
    keys.set(key, entry);
    if (typeof fault === 'object' && 'until' in fault) await fault.until();
    entry.answer = structuredClone(answerDespite(fault, seen));
    return entry.answer;
  }

  function answerDespite(fault: Fault | undefined, seen: SeenRequest): Answer {
    if (typeof fault === 'object' && 'apiError' in fault) return refused(fault.apiError, 'param_error');
    if (fault === 'fail-and-save') return refused(500, 'internal_error');
    const done = world.carryOut(seen);
    return fault === 'do-and-fail' ? refused(500, 'internal_error') : done;
  }

  const standIn = await startStandIn<SeenRequest, Fault>(test, read, respond);
  const { carryOut: _, ...inside } = world;
  const escrowUser = 'user_m_escrow';
  inside.users.push({ Id: escrowUser, UserCategory: 'PLATFORM' });
  return {
    ...standIn,
    ...{ clientId, apiKey, escrowUser, hookSecret: 'hook-secret-of-the-stand-in-0123456789' },
    ...inside,
    /** Returns how many tokens were issued. */
    tokens: () => issued,
    /** Rejects every token and key from now on, or accepts them again. */
    revokeKey: (revoked: boolean) => {
      isRevoked = revoked;
      if (revoked) tokens.clear();
    },
    /** Rejects the tokens that were issued. */
    endTokens: () => tokens.clear(),
    /** Forgets all idempotency keys, as Mangopay does after 24 hours. */
    forgetKeys: () => keys.clear(),
  };
}

/** The stored response under a key: 404 while the first request is under way. */
function storedAnswer(used: UsedKey | undefined): Answer {
  if (used?.answer === undefined) return refused(404, 'ressource_not_found');
  const { status, body } = used.answer;
  return { status: 200, body: { StatusCode: String(status), Resource: body } };
}
