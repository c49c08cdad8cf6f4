import { execFile, execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { listenLocally, sendEndlessly } from './local-server.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** A time-stamping authority: an HTTP server that runs `openssl ts`, with certificates made by openssl. */
export interface TimeStampAuthority {
  readonly url: string;
  /** PEM file of the certificate authority. */
  readonly caFile: string;
  /** How many queries it received. */
  asked(): number;
  /** How it misbehaves; undefined if it does not. */
  lie: TimeStampLie | undefined;
  /** Returns the reply to a query in DER, or a wrong one. */
  reply(query: Uint8Array, lie?: TimeStampReplyLie): Promise<Buffer>;
}

/** Wrong replies. */
export type TimeStampReplyLie =
  | 'ANOTHER_IMPRINT'
  | 'ANOTHER_NONCE'
  | 'REJECTED'
  | 'SELF_SIGNED'
  | 'NOT_FOR_TIME_STAMPS'
  | 'UNNAMED_CERTIFICATE'
  | 'OTHER_CERTIFICATE_NAMED'
  | 'TOO_MANY_CERTIFICATES'
  | 'ALTERED'
  | 'GARBAGE';

/** Wrong responses. */
export type TimeStampLie = TimeStampReplyLie | 'SILENCE' | 'ENDLESS' | 'REDIRECT' | 'ERROR';

/** The configuration of openssl: a section for certificates, and one for each signer. */
const configuration = `
[ req ]
distinguished_name = none
prompt = no
[ none ]
[ ca ]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign,cRLSign
[ stamping ]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = critical,timeStamping
[ signing ]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = critical,codeSigning
[ tsa ]
default_tsa = own
[ own ]
serial = serial
signer_cert = authority.pem
signer_key = authority.key
certs = ca.pem
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
ess_cert_id_alg = ess
accuracy = secs:1
[ past ]
database = index.txt
new_certs_dir = .
default_md = sha256
policy = any
rand_serial = yes
[ any ]
commonName = supplied
`;

/** The time of stamps of an expired authority, Unix seconds: in the year of its certificates. */
export const endedStampS = Date.UTC(2020, 5, 1) / 1000;
/** That time, and the validity of its certificates, in ASN.1. */
const [endedStamp, endedFrom, endedTo] = ['20200601000000Z', '20200101000000Z', '20210101000000Z'] as const;

const run = promisify(execFile);

/** How its certificates are made. */
export interface AuthorityTerms {
  /** The hash by which it names its certificate. */
  readonly ess?: 'sha1' | 'sha256' | 'sha512';
  readonly keys?: 'ec' | 'rsa';
  /** Whether its certificates expired years ago. Its stamps are then from before that. */
  readonly hasEnded?: boolean;
}

/** Starts an authority, which listens until the end of the test. */
export async function startTimeStampAuthority(
  test: Pick<TestContext, 'after'>,
  { ess = 'sha256', keys = 'ec', hasEnded = false }: AuthorityTerms = {},
): Promise<TimeStampAuthority> {
  const folder = temporaryFolder(test);
  const file = (name: string) => join(folder, name);
  writeFileSync(file('ts.cnf'), configuration.replace('= ess', `= ${ess}`));
  /** Runs a command, which is split at its spaces; the name of a certificate has some. */
  const openssl = (command: string, subject?: string) => {
    const words = [...command.split(' '), ...(subject === undefined ? [] : ['-subj', `/CN=${subject}`])];
    execFileSync('openssl', words, { cwd: folder, stdio: 'ignore' });
  };
  const newKey = keys === 'ec' ? 'ec -pkeyopt ec_paramgen_curve:P-256' : 'rsa:2048';
  const made = (name: string, section: string, by?: string) =>
    openssl(
      `req -x509 -newkey ${newKey} -nodes -keyout ${name}.key -out ${name}.pem -days 2 -config ts.cnf -extensions ${section}${
        by === undefined ? '' : ` -CA ${by}.pem -CAkey ${by}.key`
      }`,
      `${name} of the test`,
    );
  /** The same, with the command that can set the dates of a certificate. */
  const madeLongAgo = (name: string, section: string, by?: string) => {
    openssl(
      `req -new -newkey ${newKey} -nodes -keyout ${name}.key -config ts.cnf -out ${name}.csr`,
      `${name} of the test`,
    );
    const signer = by === undefined ? '-selfsign' : `-cert ${by}.pem`;
    openssl(
      `ca -batch -notext -config ts.cnf -name past -extensions ${section} -startdate ${endedFrom} -enddate ${endedTo} -in ${name}.csr -out ${name}.pem ${signer} -keyfile ${by ?? name}.key`,
    );
  };
  if (hasEnded) writeFileSync(file('index.txt'), '');
  const make = hasEnded ? madeLongAgo : made;
  make('ca', 'ca');
  make('authority', 'stamping', 'ca');

  let asked = 0;
  let queries = 0;
  const authority: { -readonly [Member in keyof TimeStampAuthority]: TimeStampAuthority[Member] } = {
    url: '',
    caFile: file('ca.pem'),
    asked: () => asked,
    lie: undefined,
    reply: (query, lie) => {
      if (lie !== undefined) return lies[lie](Buffer.from(query));
      return hasEnded ? signedOtherwise(Buffer.from(query), 'authority', '-cades') : reply(query);
    },
  };
  /** By what to make them of a query. */
  const lies: Record<TimeStampReplyLie, (query: Buffer) => Promise<Buffer>> = {
    ANOTHER_IMPRINT: (query) => reply(changed(query, 30)),
    // After the nonce is certReq: three bytes.
    ANOTHER_NONCE: (query) => reply(changed(query, query.length - 4)),
    REJECTED: (query) => {
      // Its hash is SHA-512 by name, which is longer than the one that is there.
      const at = query.indexOf(Buffer.from('608648016503040201', 'hex')) + 8;
      return reply(Buffer.from(query).fill(3, at, at + 1));
    },
    SELF_SIGNED: (query) => {
      made('selfmade', 'stamping');
      return reply(query, 'selfmade');
    },
    NOT_FOR_TIME_STAMPS: (query) => {
      made('code', 'signing', 'ca');
      return signedOtherwise(query, 'code', '-cades');
    },
    UNNAMED_CERTIFICATE: (query) => signedOtherwise(query, 'authority'),
    OTHER_CERTIFICATE_NAMED: (query) => {
      // Another certificate of the same key, issuer and serial number.
      const words = ['x509', '-in', 'authority.pem', '-noout', '-serial'];
      const serial = execFileSync('openssl', words, { cwd: folder, encoding: 'utf8' }).trim().split('=')[1];
      const issuer = '-CA ca.pem -CAkey ca.key';
      openssl(
        `req -x509 -key authority.key -set_serial 0x${serial} -config ts.cnf -extensions stamping ${issuer} -out other.pem`,
        'somebody else',
      );
      return signedOtherwise(query, 'authority', '-cades -nocerts -certfile other.pem');
    },
    TOO_MANY_CERTIFICATES: (query) => {
      const many = Array.from({ length: 17 }, (_, place) => {
        openssl('req -x509 -key ca.key -config ts.cnf -extensions ca -out one.pem', String(place));
        return readFileSync(file('one.pem'), 'utf8');
      });
      writeFileSync(file('many.pem'), many.join(''));
      return signedOtherwise(query, 'authority', '-cades -certfile many.pem');
    },
    ALTERED: async (query) => {
      const good = await reply(query);
      return changed(good, good.length - 6);
    },
    GARBAGE: async () => Buffer.from('<html>Welcome</html>'),
  };
  const server = createServer((request, response) => void answer(request, response));
  authority.url = `${await listenLocally(test, server, () => server.closeAllConnections())}/stamp`;
  return authority;

  /** Replies to a query with openssl, signed with the certificate of that name. */
  async function reply(query: Uint8Array, signer = 'authority'): Promise<Buffer> {
    queries += 1;
    const [queryFile, answered, config] = [`${queries}.tsq`, `${queries}.tsr`, `${queries}.cnf`];
    writeFileSync(file(queryFile), query);
    const own = readFileSync(file('ts.cnf'), 'utf8');
    writeFileSync(
      file(config),
      own
        .replaceAll('authority.', `${signer}.`)
        .replace('= serial', `= ${queries}.serial`)
        .replace('= ca.pem', `= ${signer === 'authority' ? 'ca' : signer}.pem`),
    );
    writeFileSync(file(`${queries}.serial`), String(10 + queries));
    await run('openssl', ['ts', '-reply', '-config', config, '-queryfile', queryFile, '-out', answered], {
      cwd: folder,
    });
    return readFileSync(file(answered));
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const query = await buffer(request);
    asked += 1;
    if (request.headers['content-type'] !== 'application/timestamp-query')
      return void response.writeHead(415).end();
    switch (authority.lie) {
      case 'SILENCE':
        return;
      case 'ENDLESS':
        return sendEndlessly(response);
      case 'REDIRECT':
        return void response.writeHead(302, { location: authority.url }).end();
      case 'ERROR':
        return void response.writeHead(503).end('busy');
      default: {
        const body = await authority.reply(query, authority.lie);
        response.writeHead(200, { 'content-type': 'application/timestamp-reply' }).end(body);
      }
    }
  }

  /** A reply with the right content, signed by openssl cms, which accepts what openssl ts does not. */
  async function signedOtherwise(query: Buffer, signer: string, words = '-binary'): Promise<Buffer> {
    writeFileSync(file('good.tsr'), await reply(query));
    openssl('ts -reply -in good.tsr -token_out -out good.der');
    openssl('cms -verify -noverify -in good.der -inform DER -binary -out content.der');
    if (hasEnded) {
      const content = readFileSync(file('content.der'));
      const at = content.toString('latin1').search(/\d{14}Z/);
      writeFileSync(file('content.der'), content.fill(endedStamp, at, at + endedStamp.length));
    }
    const content = '-in content.der -econtent_type 1.2.840.113549.1.9.16.1.4 -nodetach';
    openssl(
      `cms -sign ${content} -signer ${signer}.pem -inkey ${signer}.key ${words} -out other.der -binary -outform DER`,
    );
    const granted = Buffer.from('3003020100', 'hex');
    const body = Buffer.concat([granted, readFileSync(file('other.der'))]);
    return Buffer.concat([Buffer.of(0x30, 0x82, body.length >> 8, body.length & 0xff), body]);
  }
}

function changed(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
}
