import Fastify, { type FastifyRequest } from 'fastify';
import { type Artwork, openRegistry, type Platform } from './yardstick.ts';

// The second yardstick: the same promises as one writes them with a framework on an ordinary day, one transaction a
// call, schemas for what comes in and goes out, a hook for the signature. It writes no log.

declare module 'fastify' {
  interface FastifyRequest {
    /** The bytes of the body, which the signature covers. */
    rawBody: Buffer;
    /** Who signed; set by the hook before any handler runs. */
    platform: Platform | null;
  }
}

const [, , dataDir = '.'] = process.argv;
const registry = openRegistry(dataDir);
const text = { type: 'string', minLength: 1, maxLength: 200 } as const;
const answered = { type: 'string' } as const;

const artworkSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['author', 'era', 'size', 'material', 'condition', 'price'],
  properties: {
    author: text,
    era: text,
    size: text,
    material: text,
    condition: { ...text, maxLength: 2_000 },
    price: { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
  },
} as const;

const filedSchema = {
  type: 'object',
  properties: {
    filingNo: answered,
    status: answered,
    chain: answered,
    hash: answered,
    timestamp: answered,
  },
} as const;

const provenanceSchema = {
  type: 'object',
  properties: {
    filingNo: answered,
    author: answered,
    records: { type: 'array', items: { type: 'object', properties: { event: answered, at: answered } } },
    retentionYears: { type: 'integer' },
  },
} as const;

/** An error, with the status that Fastify answers for an error that bears one. */
class Refused extends Error {
  readonly statusCode: number;

  constructor(statusCode: number, message: string) {
    super(message);
    this.statusCode = statusCode;
  }
}

/** Admits the call and carries it out in one transaction, which is on disk when this returns. */
const inOneTransaction = registry.sqlite.transaction(
  <T>(request: FastifyRequest, work: (platform: Platform, nowS: number) => T): T | number => {
    const { platform } = request;
    if (platform === null) throw new Error('The hook sets the platform.');
    const nowS = Math.floor(Date.now() / 1000);
    const refused = registry.admit(platform, String(request.headers['x-nonce']), nowS);
    return refused ?? work(platform, nowS);
  },
);

function carryOut(
  request: FastifyRequest,
  work: (platform: Platform, nowS: number) => object | undefined,
): object {
  const outcome = inOneTransaction.immediate(request, work);
  if (typeof outcome === 'number') {
    throw new Refused(outcome, outcome === 401 ? 'The nonce was used before.' : 'The quota is used up.');
  }
  if (outcome === undefined) throw new Refused(404, 'No filing has this number.');
  return outcome as object;
}

const app = Fastify({ bodyLimit: 64 * 1024 });
app.decorateRequest('platform', null);
app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
  request.rawBody = body as Buffer;
  try {
    done(null, JSON.parse(body.toString()));
  } catch {
    done(new Refused(400, 'The body is no JSON.'));
  }
});
app.addHook('preValidation', async (request) => {
  const { method, url, headers, rawBody: body = Buffer.alloc(0) } = request;
  request.platform = registry.authenticate(headers, { method, url, body }) ?? null;
  if (request.platform === null) throw new Refused(401, 'The signature does not match.');
});
app.post<{ Body: Artwork }>(
  '/api/v1/filing',
  { schema: { body: artworkSchema, response: { 200: filedSchema } } },
  async (request) => carryOut(request, (platform, nowS) => registry.file(request.body, platform, nowS)),
);
app.get<{ Params: { filingNo: string } }>(
  '/api/v1/provenance/:filingNo',
  { schema: { response: { 200: provenanceSchema } } },
  async (request) => carryOut(request, () => registry.provenance(request.params.filingNo)),
);
app.addHook('onClose', async () => registry.sqlite.close());
process.once('SIGTERM', () => app.close().then(() => process.exit(0)));
const address = await app.listen({ host: '127.0.0.1', port: 0 });
process.stdout.write(`fastify ready public=${address}\n`);
