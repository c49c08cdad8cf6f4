import { hash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { isSignedBy } from '../../src/evidence/log/agreement.ts';
import { isConsistent } from '../evidence/verifier/small-log.ts';
import { listenLocally, sendEndlessly } from './local-server.ts';
import { witnessKey } from './note-keys.ts';

/** A witness, written from c2sp.org/tlog-witness. Signatures are verified with the formats. */
export interface WitnessStandIn {
  readonly name: string;
  /** Its verifier key. */
  readonly vkey: string;
  /** Its submission prefix. */
  readonly url: string;
  /** The verifier keys of the logs that it knows; none at first. */
  readonly logs: Set<string>;
  /** The last cosigned tree, by origin. */
  readonly cosigned: Map<string, Cosigned>;
  /** The requests, with the status of each response. */
  readonly asked: { readonly old: number; readonly size: number; readonly status: number }[];
  /** How it misbehaves; undefined if it does not. */
  lie: WitnessLie | undefined;
}

interface Cosigned {
  readonly size: number;
  readonly root: Buffer;
}

/** Wrong responses. */
export type WitnessLie =
  | 'ANOTHER_CHECKPOINT'
  | 'ANOTHER_KEY'
  | 'OLD_TIME'
  | 'FUTURE_TIME'
  | 'SHORT_SIGNATURE'
  | 'GARBAGE'
  | 'NO_HTTP'
  | 'SILENCE'
  | 'ENDLESS'
  | 'REDIRECT'
  | 'ERROR'
  | 'CONFLICT_WITHOUT_SIZE'
  | 'CONFLICT_FOR_EVER'
  | 'CONFLICT_BEYOND';

/** Starts a witness, which listens until the end of the test. */
export async function startWitness(test: Pick<TestContext, 'after'>, name: string): Promise<WitnessStandIn> {
  const [key, otherKey] = [witnessKey(name), witnessKey(name)];
  const witness: { -readonly [Member in keyof WitnessStandIn]: WitnessStandIn[Member] } = {
    name,
    vkey: key.vkey,
    url: '',
    logs: new Set(),
    cosigned: new Map(),
    asked: [],
    lie: undefined,
  };
  const server = createServer((request, response) => void answer(request, response));
  witness.url = `${await listenLocally(test, server, () => server.closeAllConnections())}/of/${name}`;
  return witness;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST' || request.url !== `/of/${name}/add-checkpoint`)
      return void response.writeHead(405).end();
    const submitted = readSubmission(await text(request));
    if (submitted === undefined) return void response.writeHead(400).end('not a submission\n');
    const { status, body, type } = lied(submitted, response) ?? judge(submitted);
    witness.asked.push({ old: submitted.old, size: submitted.size, status });
    if (status > 0) response.writeHead(status, { 'content-type': type ?? 'text/plain' }).end(body);
  }

  function judge(submitted: Submission): Verdict {
    const known = [...witness.logs].filter((vkey) => vkey.startsWith(`${submitted.origin}+`));
    if (known.length === 0) return { status: 404, body: 'unknown log\n' };
    if (!isSignedBy(submitted.note, known)) return { status: 403, body: 'no signature of a known key\n' };
    const { old, size, root, proof, origin } = submitted;
    if (old > size) return { status: 400, body: 'old size beyond the checkpoint\n' };
    const last = witness.cosigned.get(origin) ?? { size: 0, root: hash('sha256', '', 'buffer') };
    if (old !== last.size) return { status: 409, body: `${last.size}\n`, type: 'text/x.tlog.size' };
    if (!isConsistent(last, { size, root }, proof)) return { status: 422, body: 'inconsistent\n' };
    witness.cosigned.set(origin, { size, root });
    return { status: 200, body: key.cosign(submitted.text, now()) };
  }

  /** Returns the wrong response, if any; status 0 if it has responded or never will. */
  function lied(submitted: Submission, response: ServerResponse): Verdict | undefined {
    const { text, size, root } = submitted;
    const conflict = (body: string) => ({ status: 409, body, type: 'text/x.tlog.size' });
    const good = (body: string) => ({ status: 200, body });
    const lies: Record<WitnessLie, () => Verdict> = {
      ANOTHER_CHECKPOINT: () => {
        const other = text.replace(root.toString('base64'), hash('sha256', 'another tree', 'base64'));
        return good(key.cosign(other, now()));
      },
      ANOTHER_KEY: () => good(withIdOf(key.vkey, otherKey.cosign(text, now()))),
      OLD_TIME: () => good(key.cosign(text, now() - 3_600)),
      FUTURE_TIME: () => good(key.cosign(text, now() + 3_600)),
      SHORT_SIGNATURE: () => {
        const [dash, by, encoded = ''] = key.cosign(text, now()).trim().split(' ');
        return good(`${dash} ${by} ${Buffer.from(encoded, 'base64').subarray(0, 40).toString('base64')}\n`);
      },
      GARBAGE: () => good('<html>\u0000\u2014 — not a signature — </html>\n\n\n'),
      NO_HTTP: () => {
        response.socket?.end('SSH-2.0-OpenSSH_9.2\r\n');
        return { status: 0, body: '' };
      },
      SILENCE: () => ({ status: 0, body: '' }),
      ENDLESS: () => {
        sendEndlessly(response);
        return { status: 0, body: '' };
      },
      REDIRECT: () => {
        response.writeHead(307, { location: `${witness.url}/add-checkpoint` }).end();
        return { status: 0, body: '' };
      },
      ERROR: () => ({ status: 500, body: 'a stack, and more\n' }),
      CONFLICT_WITHOUT_SIZE: () => conflict('01\n'),
      CONFLICT_FOR_EVER: () => conflict(`${Math.max(0, size - 1)}\n`),
      CONFLICT_BEYOND: () => conflict(`${size + 1}\n`),
    };
    return witness.lie && lies[witness.lie]();
  }
}

/** A signature line with the key ID of another verifier key. */
function withIdOf(vkey: string, line: string): string {
  const [dash, name, encoded = ''] = line.trim().split(' ');
  const id = Buffer.from(vkey.split('+')[1] ?? '', 'hex');
  const forged = Buffer.concat([id, Buffer.from(encoded, 'base64').subarray(4)]);
  return `${dash} ${name} ${forged.toString('base64')}\n`;
}

const now = () => Math.floor(Date.now() / 1_000);

interface Verdict {
  readonly status: number;
  readonly body: string;
  readonly type?: string;
}

interface Submission {
  readonly old: number;
  readonly proof: readonly Buffer[];
  /** The signed note, and its text. */
  readonly note: string;
  readonly text: string;
  readonly origin: string;
  readonly size: number;
  readonly root: Buffer;
}

/** Reads a submission; undefined if it is malformed. */
function readSubmission(body: string): Submission | undefined {
  const [, digits = '', proofLines = '', text = '', signatureLines = ''] =
    /^old (0|[1-9]\d*)\n((?:[A-Za-z0-9+/]{43}=\n){0,63})\n((?:[^\n]+\n){3,})\n((?:\u2014 \S+ \S+\n)+)$/.exec(
      body,
    ) ?? [];
  const [origin, size, root] = text.split('\n');
  if (origin === undefined || !/^(0|[1-9]\d*)$/.test(size ?? '')) return undefined;
  return {
    old: Number(digits),
    proof: lines(proofLines).map((line) => Buffer.from(line, 'base64')),
    text,
    note: `${text}\n${signatureLines}`,
    origin,
    size: Number(size),
    root: Buffer.from(root ?? '', 'base64'),
  };
}

const lines = (text: string) => text.split('\n').filter((line) => line !== '');
