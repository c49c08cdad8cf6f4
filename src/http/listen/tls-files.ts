import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { errorText } from '../../lib/file-errors.ts';

/** The paths of the PEM files for the TLS of a listener. */
export interface TlsFiles {
  /** The certificate of the listener, then its chain. */
  readonly certificate: string;
  /** Its private key, without a passphrase. */
  readonly key: string;
  /** The authorities that must have issued client certificates; undefined if clients need none. */
  readonly clientCa?: string | undefined;
}

/** The checked content of the TLS files of a listener. */
export interface TlsMaterial {
  /** PEM, as in the files. */
  readonly certificate: string;
  readonly key: string;
  readonly clientCa: string | undefined;
  /** The validity of the certificate, in Unix milliseconds. */
  readonly beginsAtMs: number;
  readonly endsAtMs: number;
}

/** A certificate expires soon if it has less than this left, in milliseconds, … */
const soonMs = 30 * 86_400_000;
/** … and less than this part of its lifetime: some are valid for six days and renewed after three. */
const soonPart = 1 / 3;

/** The rule for the content of each file. */
const contents: Readonly<Record<keyof TlsFiles, string>> = {
  certificate: 'must name a file with a certificate in PEM, followed by the certificates of its chain',
  key: 'must name a file with a private key in PEM, without a passphrase',
  clientCa: 'must name a file with certificates of authorities in PEM',
};

/** A TLS file that cannot be used. The message follows the name of its setting. */
export class TlsFileError extends Error {
  override name = 'TlsFileError';
  readonly file: keyof TlsFiles;

  constructor(file: keyof TlsFiles, message: string) {
    super(message);
    this.file = file;
  }
}

/** Reads TLS files. Throws TlsFileError for the first that cannot be used, and if key and certificate do not match. */
export function readTlsFiles(files: TlsFiles): TlsMaterial {
  const certificate = readText('certificate', files.certificate);
  const key = readText('key', files.key);
  const clientCa = files.clientCa === undefined ? undefined : readText('clientCa', files.clientCa);
  const own = attempt('certificate', () => new X509Certificate(certificate), contents.certificate);
  const privateKey = attempt('key', () => createPrivateKey(key), contents.key);
  // With a file without certificates, Node would accept clients of the authorities that it trusts itself.
  if (clientCa !== undefined) attempt('clientCa', () => new X509Certificate(clientCa), contents.clientCa);
  if (!own.checkPrivateKey(privateKey))
    throw new TlsFileError('key', 'must name the private key of the first certificate');
  // Loaded here, because most commands do not need it.
  const { createSecureContext } = process.getBuiltinModule('node:tls');
  attempt('certificate', () => createSecureContext({ cert: certificate, key, ca: clientCa }));
  const { validFromDate, validToDate } = own;
  return { certificate, key, clientCa, beginsAtMs: +validFromDate, endsAtMs: +validToDate };
}

/** The paths of TLS files. */
export function pathsOf({ certificate, key, clientCa }: TlsFiles): readonly string[] {
  return clientCa === undefined ? [certificate, key] : [certificate, key, clientCa];
}

/** How close a certificate is to its expiry. */
export type CertificateAge = 'GOOD' | 'EXPIRES_SOON' | 'EXPIRED';

/** How close a certificate is to its expiry at `nowMs`, in Unix milliseconds. */
export function certificateAge({ beginsAtMs, endsAtMs }: TlsMaterial, nowMs: number): CertificateAge {
  const leftMs = endsAtMs - nowMs;
  if (leftMs <= 0) return 'EXPIRED';
  return leftMs < Math.min(soonMs, soonPart * (endsAtMs - beginsAtMs)) ? 'EXPIRES_SOON' : 'GOOD';
}

function readText(file: keyof TlsFiles, path: string): string {
  return attempt(file, () => {
    // Reading a pipe could block forever.
    if (!statSync(path).isFile()) throw new Error(`${path} is not an ordinary file`);
    return readFileSync(path, 'utf8');
  });
}

/** Throws TlsFileError with the rule instead of parse errors of OpenSSL, which do not help an operator. */
function attempt<T>(file: keyof TlsFiles, attempted: () => T, rule?: string): T {
  try {
    return attempted();
  } catch (error) {
    throw new TlsFileError(file, rule ?? `cannot be used: ${errorText(error)}`);
  }
}
