import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { errorText } from '../../lib/file-errors.ts';

/** Where a door finds what it speaks TLS with: paths of PEM files. */
export interface TlsFiles {
  /** The certificate of the door, then those of its chain. */
  readonly certificate: string;
  /** Its private key, without a passphrase. */
  readonly key: string;
  /** The authorities whose certificates clients must have; undefined where clients need none. */
  readonly clientCa?: string | undefined;
}

/** What the files of a door have, checked. */
export interface TlsMaterial {
  /** PEM, as in the files. */
  readonly certificate: string;
  readonly key: string;
  readonly clientCa: string | undefined;
  /** From when to when the certificate of the door is good, in Unix milliseconds. */
  readonly beginsAtMs: number;
  readonly endsAtMs: number;
}

/** What each file must have. */
const contents: Readonly<Record<keyof TlsFiles, string>> = {
  certificate: 'must name a file with a certificate in PEM, the certificates of its chain behind it',
  key: 'must name a file with a private key in PEM, without a passphrase',
  clientCa: 'must name a file with certificates of authorities in PEM',
};

/** A file of a door cannot be used; the message is a rule or a reason that follows the name of its setting. */
export class TlsFileError extends Error {
  override name = 'TlsFileError';
  readonly file: keyof TlsFiles;

  constructor(file: keyof TlsFiles, message: string) {
    super(message);
    this.file = file;
  }
}

/** Reads the files of a door. Throws TlsFileError for the first that cannot be used, and where key and certificate differ. */
export function readTlsFiles(files: TlsFiles): TlsMaterial {
  const certificate = readText('certificate', files.certificate);
  const key = readText('key', files.key);
  const clientCa = files.clientCa === undefined ? undefined : readText('clientCa', files.clientCa);
  const own = parsed('certificate', () => new X509Certificate(certificate));
  const privateKey = parsed('key', () => createPrivateKey(key));
  // One without any would leave the door to the authorities that Node trusts.
  if (clientCa !== undefined) parsed('clientCa', () => new X509Certificate(clientCa));
  if (!own.checkPrivateKey(privateKey))
    throw new TlsFileError('key', 'must name the private key of the first certificate');
  // Loaded here: most commands have no use for it.
  const { createSecureContext } = process.getBuiltinModule('node:tls');
  attempt('certificate', () => createSecureContext({ cert: certificate, key, ca: clientCa }));
  const { validFromDate, validToDate } = own;
  return { certificate, key, clientCa, beginsAtMs: +validFromDate, endsAtMs: +validToDate };
}

/** The paths among the files of a door. */
export function pathsOf({ certificate, key, clientCa }: TlsFiles): readonly string[] {
  return clientCa === undefined ? [certificate, key] : [certificate, key, clientCa];
}

function readText(file: keyof TlsFiles, path: string): string {
  return attempt(file, () => {
    // It is read again whenever it changes; a pipe would be waited for without end.
    if (!statSync(path).isFile()) throw new Error(`${path} is not an ordinary file`);
    return readFileSync(path, 'utf8');
  });
}

function attempt<T>(file: keyof TlsFiles, attempted: () => T): T {
  try {
    return attempted();
  } catch (error) {
    throw new TlsFileError(file, `cannot be used: ${errorText(error)}`);
  }
}

/** The words of OpenSSL for what it cannot parse would help nobody. */
function parsed<T>(file: keyof TlsFiles, parse: () => T): T {
  try {
    return parse();
  } catch {
    throw new TlsFileError(file, contents[file]);
  }
}
