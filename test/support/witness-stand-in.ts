import {
  createHash,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign as signWith,
  verify as verifyWith,
} from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { TestContext } from 'node:test';
import { listenLocally } from './local-server.ts';

/**
 * A witness made from the C2SP documents tlog-witness, tlog-cosignature, signed-note and tlog-checkpoint, and from RFC 9162,
 * section 2.1.4.2, alone. It shares nothing with the sources.
 */
export interface WitnessStandIn {
  readonly name: string;
  /** Its verifier key. */
  readonly vkey: string;
  /** Its submission prefix. */
  readonly url: string;
  /** The logs that it knows, by their verifier keys; none at first. */
  readonly logs: Set<string>;
  /** What it cosigned last, by origin. */
  readonly cosigned: Map<string, Cosigned>;
  /** What it was asked, and its answer's status. */
  readonly asked: { readonly old: number; readonly size: number; readonly status: number }[];
  /** What it does instead of what it should; undefined for nothing. */
  lie: WitnessLie | undefined;
}

interface Cosigned {
  readonly size: number;
  readonly root: Buffer;
}

/** How a witness, or somebody in its place, may answer. */
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

const sha256 = (...parts: readonly (Buffer | string)[]) => {
  const digest = createHash('sha256');
  for (const part of parts) digest.update(part);
  return digest.digest();
};
const rawKey = (key: KeyObject) => Buffer.from(key.export({ format: 'jwk' }).x as string, 'base64url');
const keyId = (name: string, material: Buffer) => sha256(`${name}\n`, material).subarray(0, 4);

/** A verifier key of a signed note. */
export function vkeyOf(name: string, type: number, publicKey: KeyObject): string {
  const material = Buffer.concat([Buffer.from([type]), rawKey(publicKey)]);
  return `${name}+${keyId(name, material).toString('hex')}+${material.toString('base64')}`;
}

/** A witness that listens until the test is over. */
export async function startWitness(test: Pick<TestContext, 'after'>, name: string): Promise<WitnessStandIn> {
  const keys = generateKeyPairSync('ed25519');
  const otherKeys = generateKeyPairSync('ed25519');
  const witness: { -readonly [Member in keyof WitnessStandIn]: WitnessStandIn[Member] } = {
    name,
    vkey: vkeyOf(name, 4, keys.publicKey),
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
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    if (request.method !== 'POST' || request.url !== `/of/${name}/add-checkpoint`)
      return void response.writeHead(405).end();
    const submitted = readSubmission(Buffer.concat(parts).toString('utf8'));
    if (submitted === undefined) return void response.writeHead(400).end('not a submission\n');
    const { status, body, type } = lied(submitted, response) ?? judge(submitted);
    witness.asked.push({ old: submitted.old, size: submitted.size, status });
    if (status > 0) response.writeHead(status, { 'content-type': type ?? 'text/plain' }).end(body);
  }

  function judge(submitted: Submission): Verdict {
    const known = [...witness.logs].filter((vkey) => vkey.startsWith(`${submitted.origin}+`));
    if (known.length === 0) return { status: 404, body: 'unknown log\n' };
    if (!isSignedBy(submitted, known)) return { status: 403, body: 'no signature of a known key\n' };
    const { old, size, root, proof, origin } = submitted;
    if (old > size) return { status: 400, body: 'old size beyond the checkpoint\n' };
    const last = witness.cosigned.get(origin) ?? { size: 0, root: sha256('') };
    if (old !== last.size) return { status: 409, body: `${last.size}\n`, type: 'text/x.tlog.size' };
    if (!isConsistent(last, { size, root }, proof)) return { status: 422, body: 'inconsistent\n' };
    witness.cosigned.set(origin, { size, root });
    return { status: 200, body: cosign(submitted.text, now(), keys.privateKey) };
  }

  function cosign(text: string, timeS: number, key: KeyObject): string {
    const time = Buffer.alloc(8);
    time.writeBigUInt64BE(BigInt(timeS));
    const signature = signWith(null, Buffer.from(`cosignature/v1\ntime ${timeS}\n${text}`), key);
    const id = keyId(name, Buffer.concat([Buffer.from([4]), rawKey(createPublicKey(keys.privateKey))]));
    return `— ${name} ${Buffer.concat([id, time, signature]).toString('base64')}\n`;
  }

  /** What it answers instead of the truth; a status of 0 if it has answered, or never will. */
  function lied(submitted: Submission, response: ServerResponse): Verdict | undefined {
    const { text, size, root } = submitted;
    const conflict = (body: string) => ({ status: 409, body, type: 'text/x.tlog.size' });
    const good = (body: string) => ({ status: 200, body });
    const lies: Record<WitnessLie, () => Verdict> = {
      ANOTHER_CHECKPOINT: () => {
        const other = text.replace(root.toString('base64'), sha256('another tree').toString('base64'));
        return good(cosign(other, now(), keys.privateKey));
      },
      ANOTHER_KEY: () => good(cosign(text, now(), otherKeys.privateKey)),
      OLD_TIME: () => good(cosign(text, now() - 3_600, keys.privateKey)),
      FUTURE_TIME: () => good(cosign(text, now() + 3_600, keys.privateKey)),
      SHORT_SIGNATURE: () => {
        const [dash, by, encoded = ''] = cosign(text, now(), keys.privateKey).trim().split(' ');
        return good(`${dash} ${by} ${Buffer.from(encoded, 'base64').subarray(0, 40).toString('base64')}\n`);
      },
      GARBAGE: () => good('<html>\u0000\u2014 — not a signature — </html>\n\n\n'),
      NO_HTTP: () => {
        response.socket?.end('SSH-2.0-OpenSSH_9.2\r\n');
        return { status: 0, body: '' };
      },
      SILENCE: () => ({ status: 0, body: '' }),
      ENDLESS: () => {
        response.writeHead(200);
        const more = () => {
          while (!response.destroyed && response.write('— '.repeat(4_096)));
          if (!response.destroyed) response.once('drain', more);
        };
        more();
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

const now = () => Math.floor(Date.now() / 1_000);

interface Verdict {
  readonly status: number;
  readonly body: string;
  readonly type?: string;
}

interface Submission {
  readonly old: number;
  readonly proof: readonly Buffer[];
  /** The note's text. */
  readonly text: string;
  readonly signatures: readonly string[];
  readonly origin: string;
  readonly size: number;
  readonly root: Buffer;
}

/** Reads what is submitted; undefined if it has not the form. */
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
    signatures: lines(signatureLines),
    origin,
    size: Number(size),
    root: Buffer.from(root ?? '', 'base64'),
  };
}

const lines = (text: string) => text.split('\n').filter((line) => line !== '');

/** Whether a note bears a signature by one of these keys, and none that claims to be and is not. */
function isSignedBy({ text, signatures }: Submission, vkeys: readonly string[]): boolean {
  let good = 0;
  for (const line of signatures) {
    const [, by, encoded = ''] = line.split(' ');
    const bytes = Buffer.from(encoded, 'base64');
    for (const vkey of vkeys) {
      const [name, id, material = ''] = vkey.split('+', 2).concat(vkey.split('+').slice(2).join('+'));
      if (by !== name || bytes.toString('hex', 0, 4) !== id) continue;
      const key = createPublicKey({
        key: {
          kty: 'OKP',
          crv: 'Ed25519',
          x: Buffer.from(material, 'base64').subarray(1).toString('base64url'),
        },
        format: 'jwk',
      });
      if (!verifyWith(null, Buffer.from(text), key, bytes.subarray(4))) return false;
      good += 1;
    }
  }
  return good > 0;
}

/** RFC 9162, section 2.1.4.2, and what tlog-witness says of size zero. */
function isConsistent(first: Cosigned, second: Cosigned, proof: readonly Buffer[]): boolean {
  if (second.size === 0 && !second.root.equals(sha256(''))) return false;
  if (first.size === 0) return proof.length === 0;
  if (first.size === second.size) return proof.length === 0 && first.root.equals(second.root);
  if (proof.length === 0) return false;
  const isPowerOfTwo = Number.isInteger(Math.log2(first.size));
  const path = isPowerOfTwo ? [first.root, ...proof] : [...proof];
  let [fn, sn] = [first.size - 1, second.size - 1];
  while (fn % 2 === 1) [fn, sn] = [Math.floor(fn / 2), Math.floor(sn / 2)];
  let fr = path[0] as Buffer;
  let sr = fr;
  for (const c of path.slice(1)) {
    if (sn === 0) return false;
    if (fn % 2 === 1 || fn === sn) {
      [fr, sr] = [sha256('\u0001', c, fr), sha256('\u0001', c, sr)];
      while (fn % 2 === 0 && fn !== 0) [fn, sn] = [Math.floor(fn / 2), Math.floor(sn / 2)];
    } else sr = sha256('\u0001', sr, c);
    [fn, sn] = [Math.floor(fn / 2), Math.floor(sn / 2)];
  }
  return sn === 0 && fr.equals(first.root) && sr.equals(second.root);
}
