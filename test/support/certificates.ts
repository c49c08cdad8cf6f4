import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { isIP, isIPv4 } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { readTlsFiles } from '../../src/http/listen/tls-files.ts';
import { createTlsFront, type TlsFront, type TlsFrontOptions } from '../../src/http/listen/tls-listeners.ts';
import { silentLog } from '../../src/lib/log.ts';
import { createClientOf } from '../../src/lib/networks.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** A certificate and its private key. */
export interface Certificate {
  readonly certificateFile: string;
  readonly keyFile: string;
  /** Both in one file. */
  readonly combinedFile: string;
  /** PEM. */
  readonly certificate: string;
  readonly key: string;
}

/** An authority of a test's own. */
export interface Authority extends Certificate {
  /**
   * Issues a certificate for so many days, by default for localhost and 127.0.0.1; `subjects` are hosts and addresses. It
   * has expired if `days` is negative.
   */
  issue(name: string, days?: number, subjects?: readonly string[]): Certificate;
}

/** Makes an authority in a folder of its own. */
export function makeAuthority(test: Pick<TestContext, 'after'>): Authority {
  const folder = temporaryFolder(test);
  const keys = newKeys();
  return {
    ...make(folder, { name: 'authority', keys, isAuthority: true }),
    issue: (name, days = 2, subjects = ['localhost', '127.0.0.1']) =>
      make(folder, { name, days, subjects, issuer: { name: 'authority', keys } }),
  };
}

/** Makes a self-signed certificate for localhost in a folder. It has expired if `days` is negative. */
export function makeSelfSigned(
  folder: string,
  { days = 2, keys = newKeys() }: Pick<Made, 'days' | 'keys'> = {},
): Certificate {
  return make(folder, { name: 'localhost', days, keys, isAuthority: true, subjects: ['localhost'] });
}

const newKeys = (): Keys => generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
interface Keys {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

interface Made {
  readonly name: string;
  readonly days?: number;
  readonly subjects?: readonly string[];
  readonly isAuthority?: boolean;
  readonly keys?: Keys;
  /** The certificate is self-signed without an issuer. */
  readonly issuer?: { readonly name: string; readonly keys: Keys };
}

function make(folder: string, made: Made): Certificate {
  const { name, keys = newKeys() } = made;
  const certificate = certificateText({ ...made, keys });
  const key = String(keys.privateKey.export({ type: 'pkcs8', format: 'pem' }));
  const write = (file: string, text: string, mode: number) => {
    const path = join(folder, file);
    writeFileSync(path, text, { mode });
    return path;
  };
  return {
    certificateFile: write(`${name}.pem`, certificate, 0o644),
    keyFile: write(`${name}.key.pem`, key, 0o600),
    combinedFile: write(`${name}.combined.pem`, certificate + key, 0o600),
    certificate,
    key,
  };
}

/** Encodes a value of ASN.1 in DER. */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const lengthBytes = length < 128 ? [length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...lengthBytes), content]);
}

const sequence = (...parts: readonly Uint8Array[]) => der(0x30, ...parts);
const octets = (...parts: readonly Uint8Array[]) => der(0x04, ...parts);
const identifier = (hex: string) => der(0x06, Buffer.from(hex, 'hex'));
const bits = (bytes: Uint8Array) => der(0x03, Buffer.of(0), bytes);
const yes = der(0x01, Buffer.of(0xff));
const nameOf = (name: string) =>
  sequence(der(0x31, sequence(identifier('550403'), der(0x0c, Buffer.from(name)))));
/** UTCTime. */
const timeOf = (atMs: number) => {
  const digits = new Date(atMs).toISOString().replace(/[-:T]|\.\d+/g, '');
  return der(0x17, Buffer.from(digits.slice(2)));
};
/** The name of a host, or an address. */
const subjectOf = (subject: string) =>
  isIP(subject) === 0 ? der(0x82, Buffer.from(subject)) : der(0x87, addressBytes(subject));

function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number));
  const [left = [], right = []] = address.split('::').map((part) => part.split(':').filter(Boolean));
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0');
  return Buffer.from([...left, ...zeros, ...right].map((group) => group.padStart(4, '0')).join(''), 'hex');
}

/** The SHA-1 that names a key. */
const keyName = ({ publicKey }: Keys) =>
  createHash('sha1')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest();

const dayMs = 86_400_000;

/** Makes an X.509 certificate, as PEM. */
function certificateText({
  name,
  days = 2,
  subjects,
  isAuthority,
  keys,
  issuer,
}: Made & { keys: Keys }): string {
  const signer = issuer ?? { name, keys };
  // ecdsa-with-SHA256, or sha256WithRSAEncryption, which has a parameter.
  const algorithm =
    signer.keys.privateKey.asymmetricKeyType === 'ec'
      ? sequence(identifier('2a8648ce3d040302'))
      : sequence(identifier('2a864886f70d01010b'), der(0x05));
  const [begin, end] = days < 0 ? [days - 1, days] : [0, days];
  // A clock that lags a moment must not reject it.
  const nowMs = Date.now() - 1_000;
  const constraints = isAuthority ? sequence(yes) : sequence();
  const extensions = [
    sequence(identifier('551d0e'), octets(octets(keyName(keys)))),
    sequence(identifier('551d23'), octets(sequence(der(0x80, keyName(signer.keys))))),
    sequence(identifier('551d13'), yes, octets(constraints)),
    // Digital signatures, and signatures of certificates and revocation lists.
    ...(isAuthority ? [sequence(identifier('551d0f'), yes, octets(der(0x03, Buffer.of(1, 0x86))))] : []),
    ...(subjects ? [sequence(identifier('551d11'), octets(sequence(...subjects.map(subjectOf))))] : []),
  ];
  const content = sequence(
    der(0xa0, der(0x02, Buffer.of(2))),
    der(0x02, Buffer.of(1), randomBytes(15)),
    algorithm,
    nameOf(signer.name),
    sequence(timeOf(nowMs + begin * dayMs), timeOf(nowMs + end * dayMs)),
    nameOf(name),
    keys.publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...extensions)),
  );
  const signature = sign('sha256', content, signer.keys.privateKey);
  const lines = sequence(content, algorithm, bits(signature))
    .toString('base64')
    .replace(/.{64}(?=.)/g, '$&\n');
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
}

/** Makes this process trust an authority until the test is over. */
export function trust(test: Pick<TestContext, 'after'>, { certificate }: Certificate): void {
  const before = getCACertificates('default');
  setDefaultCACertificates([...before, certificate]);
  test.after(() => setDefaultCACertificates(before));
}

/** A TLS front with this certificate, by default for HTTP/1.1. */
export function frontOf(
  { certificateFile: certificate, keyFile: key }: Certificate,
  options: Partial<TlsFrontOptions> = {},
): TlsFront {
  const material = readTlsFiles({ certificate, key });
  return createTlsFront({
    ...{
      listener: 'public',
      material,
      protocols: ['http/1.1'],
      clientOf: createClientOf([]),
      log: silentLog,
    },
    ...options,
  });
}
