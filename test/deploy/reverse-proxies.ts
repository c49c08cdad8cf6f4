import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type Certificate, makeSelfSigned, trust } from '../support/certificates.ts';
import { eventually } from '../support/eventually.ts';
import { freeAddress } from '../support/free-address.ts';
import { installed } from '../support/installed.ts';
import { openSocket } from '../support/raw-talk.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const deploy = join(import.meta.dirname, '..', '..', 'deploy');

/** How long a proxy may take to listen, in milliseconds. */
const startMs = 20_000;

/** Where one start of a proxy differs from its file in deploy/. */
interface Place {
  /** host:port where clients connect. */
  readonly address: string;
  /** host:port of the service. */
  readonly upstream: string;
  readonly certificate: Certificate;
  /** A folder for what it writes. */
  readonly folder: string;
}

/** The texts below each CHANGE, and what the test puts there. */
type Changes = readonly (readonly [shipped: string, here: string])[];

/** A proxy that Artseal ships a configuration for. */
export interface ReverseProxy {
  /** The program, and the Debian package that has it. */
  readonly program: string;
  /** Its configuration in deploy/. */
  readonly file: string;
  readonly changes: (place: Place) => Changes;
  /** The words that start it in the foreground. */
  readonly words: (configuration: string, place: Place) => readonly string[];
}

/** The three proxies, in the order of deploy/README.md. */
export const reverseProxies: Record<'nginx' | 'caddy' | 'haproxy', ReverseProxy> = {
  nginx: {
    program: 'nginx',
    file: 'nginx.conf',
    changes: ({ address, upstream, certificate }) => [
      ['127.0.0.1:8080', upstream],
      ['listen 443', `listen ${address}`],
      ['artseal.example.com', 'localhost'],
      ['/etc/ssl/artseal/certificate.pem', certificate.certificateFile],
      ['/etc/ssl/artseal/key.pem', certificate.keyFile],
    ],
    words: (configuration, { folder }) => {
      const main = join(folder, 'main.conf');
      writeFileSync(main, nginxMain(configuration, folder));
      return ['-p', folder, '-e', 'stderr', '-c', main];
    },
  },
  caddy: {
    program: 'caddy',
    file: 'Caddyfile',
    changes: ({ address, upstream, certificate }) => [
      ['https://artseal.example.com', `https://localhost:${address.split(':')[1]}`],
      ['bind 0.0.0.0', 'bind 127.0.0.1'],
      ['/etc/ssl/artseal/certificate.pem', certificate.certificateFile],
      ['/etc/ssl/artseal/key.pem', certificate.keyFile],
      ['127.0.0.1:8080', upstream],
    ],
    words: (configuration) => ['run', '--config', configuration, '--adapter', 'caddyfile'],
  },
  haproxy: {
    program: 'haproxy',
    file: 'haproxy.cfg',
    changes: ({ address, upstream, certificate }) => [
      ['bind :443', `bind ${address}`],
      ['/etc/ssl/artseal/combined.pem', certificate.combinedFile],
      ['127.0.0.1:8080', upstream],
    ],
    words: (configuration) => ['-db', '-f', configuration],
  },
};

/** An nginx.conf that includes the file, for a process in the foreground that compresses by default. */
function nginxMain(configuration: string, folder: string): string {
  const temporaryPaths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${join(folder, name)};`,
  );
  return `daemon off;
master_process off;
pid ${join(folder, 'nginx.pid')};
error_log stderr;
events {}
http {
  access_log off;
  gzip on;
  gzip_types *;
  gzip_min_length 0;
  gzip_proxied any;
  ${temporaryPaths.join('\n  ')}
  include ${configuration};
}
`;
}

/**
 * Starts a proxy in front of an http URL, with its file of deploy/, which `spoil` may change. Returns its https URL. It
 * ends after the test.
 */
export async function startProxy(
  test: Pick<TestContext, 'after'>,
  proxy: ReverseProxy,
  upstreamUrl: string,
  spoil = (configuration: string) => configuration,
): Promise<string> {
  const folder = temporaryFolder(test);
  const address = await freeAddress();
  const certificate = makeSelfSigned(folder);
  trust(test, certificate);
  const place = { address, upstream: new URL(upstreamUrl).host, certificate, folder };
  const configuration = join(folder, proxy.file);
  writeFileSync(configuration, spoil(changed(proxy.file, proxy.changes(place))));
  const program = installed(proxy.program) ?? proxy.program;
  const child = spawn(program, proxy.words(configuration, place), {
    env: { ...process.env, ...caddyFolders(folder) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(child, 'close');
  test.after(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk;
    });
  }
  await eventually(`${proxy.program} listens`, startMs, () => {
    assert.equal(child.exitCode, null, output);
    return listens(address);
  });
  return `https://localhost:${address.split(':')[1]}`;
}

/** A configuration of deploy/ with the changes in each line below a CHANGE, and nowhere else. */
function changed(file: string, changes: Changes): string {
  const lines = readFileSync(join(deploy, file), 'utf8').split('\n');
  const adapted = lines.map((line, at) => {
    const here = changes.reduce((text, [shipped, instead]) => text.replace(shipped, instead), line);
    assert.equal(here !== line, lines[at - 1]?.includes('# CHANGE: ') ?? false, `${file}: ${line}`);
    return here;
  });
  return adapted.join('\n');
}

/** Where Caddy keeps its state, and listens for its administration. */
function caddyFolders(folder: string): NodeJS.ProcessEnv {
  return { XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder, CADDY_ADMIN: `unix/${join(folder, 'admin')}` };
}

async function listens(address: string): Promise<boolean> {
  const socket = await openSocket(`http://${address}`).catch(() => undefined);
  socket?.destroy();
  return socket !== undefined;
}
