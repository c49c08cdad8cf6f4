import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import pino from 'pino';
import { createClientOf } from '../../src/http/listen/clients.ts';
import { readTlsFiles } from '../../src/http/listen/tls-files.ts';
import { createTlsFront, type TlsFront, type TlsFrontOptions } from '../../src/http/listen/tls-front.ts';
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
  /** Issues a certificate for so many days, by default for localhost and 127.0.0.1 (as openssl writes them: DNS:…, IP:…). */
  issue(name: string, days?: number, subjects?: readonly string[]): Certificate;
}

/** Has openssl make an authority in a folder of its own. */
export function makeAuthority(test: Pick<TestContext, 'after'>): Authority {
  const folder = temporaryFolder(test);
  const own = make(folder, 'authority', 2, ['-addext', 'basicConstraints=critical,CA:TRUE']);
  const by = ['-CA', own.certificateFile, '-CAkey', own.keyFile];
  const end = ['-addext', 'basicConstraints=CA:FALSE'];
  return {
    ...own,
    issue: (name, days = 2, subjects = ['DNS:localhost', 'IP:127.0.0.1']) =>
      make(folder, name, days, [...by, ...end, '-addext', `subjectAltName=${subjects.join()}`]),
  };
}

/** Has openssl make a certificate for localhost in a folder, which nobody but itself has signed. */
export function makeSelfSigned(folder: string): Certificate {
  return make(folder, 'localhost', 2, ['-addext', 'subjectAltName=DNS:localhost']);
}

/** Has openssl make a certificate for localhost in a folder that ended in 2020. */
export function makeExpired(folder: string): Pick<Certificate, 'certificateFile' | 'keyFile'> {
  const [certificateFile, keyFile] = [join(folder, 'expired.pem'), join(folder, 'expired.key.pem')];
  const settings = `[ca]\ndefault_ca = own\n[own]\ndatabase = index.txt\nnew_certs_dir = .\nrand_serial = yes
default_md = sha256\npolicy = any\n[any]\ncommonName = supplied\n`;
  for (const [name, text] of Object.entries({ 'ca.cnf': settings, 'index.txt': '' }))
    writeFileSync(join(folder, name), text);
  const run = (...words: readonly string[]) =>
    execFileSync('openssl', words, { cwd: folder, stdio: 'ignore' });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', keyFile];
  run('req', '-new', ...key, '-subj', '/CN=localhost', '-out', 'request.pem');
  const span = ['-startdate', '20200101000000Z', '-enddate', '20200102000000Z'];
  const by = ['-selfsign', '-keyfile', keyFile, '-in', 'request.pem'];
  run('ca', '-batch', '-notext', '-config', 'ca.cnf', ...by, ...span, '-out', certificateFile);
  return { certificateFile, keyFile };
}

function make(folder: string, name: string, days: number, more: readonly string[]): Certificate {
  const [certificateFile, keyFile] = [join(folder, `${name}.pem`), join(folder, `${name}.key.pem`)];
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', keyFile];
  const subject = ['-days', String(days), '-subj', `/CN=${name}`, ...more];
  execFileSync('openssl', ['req', '-x509', ...key, ...subject, '-out', certificateFile], { stdio: 'ignore' });
  const combinedFile = join(folder, `${name}.combined.pem`);
  const [certificate, privateKey] = [readFileSync(certificateFile, 'utf8'), readFileSync(keyFile, 'utf8')];
  writeFileSync(combinedFile, certificate + privateKey, { mode: 0o600 });
  return { certificateFile, keyFile, combinedFile, certificate, key: privateKey };
}

/** Has this process trust an authority until the test is over. */
export function trust(test: Pick<TestContext, 'after'>, { certificate }: Certificate): void {
  const before = getCACertificates('default');
  setDefaultCACertificates([...before, certificate]);
  test.after(() => setDefaultCACertificates(before));
}

/** A TLS front with this certificate, for a door that speaks these protocols. */
export function frontOf(
  { certificateFile: certificate, keyFile: key }: Certificate,
  options: Partial<TlsFrontOptions> = {},
): TlsFront {
  const material = readTlsFiles({ certificate, key });
  return createTlsFront({
    ...{ material, protocols: ['http/1.1'], clientOf: createClientOf([]), log: pino({ level: 'silent' }) },
    ...options,
  });
}
