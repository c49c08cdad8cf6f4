import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { listenLocally } from '../../support/local-server.ts';
import type { SmallLog } from './small-log.ts';

/** The files of a log by their paths, as c2sp.org/tlog-tiles has them. */
export type Publication = Map<string, Uint8Array>;

/** All that a log publishes for the tree of its first `size` leaves. */
export function publicationOf(log: SmallLog, size = log.leaves.length): Publication {
  const files: Publication = new Map();
  const tree = log.tree();
  for (let [level, count] = [0, size]; count > 0; level += 1, count = Math.floor(count / 256)) {
    for (let place = 0; place * 256 < count; place += 1) {
      const width = Math.min(256, count - place * 256);
      const places = Array.from({ length: width }, (_, at) => place * 256 + at);
      const name = `${pathOf(place)}${width < 256 ? `.p/${width}` : ''}`;
      files.set(`tile/${level}/${name}`, Buffer.concat(places.map((at) => tree.subtree(8 * level, at))));
      if (level > 0) continue;
      files.set(`tile/entries/${name}`, Buffer.concat(places.map((at) => entry(log.leaves[at] ?? ''))));
    }
  }
  return files.set('checkpoint', Buffer.from(log.checkpoint(size, tree.root(size))));
}

/** A leaf after its length in two bytes. */
function entry(data: string): Buffer {
  const bytes = Buffer.from(data);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

/** Three digits an element: 1234067 is x001/x234/067. */
function pathOf(place: number): string {
  const digits = String(place)
    .padStart(9, '0')
    .replace(/^(000)+(?=...)/, '');
  return digits.replaceAll(/...(?!$)/g, 'x$&/');
}

/** Writes a publication to a folder. */
export function writePublication(folder: string, publication: Publication): string {
  for (const [path, bytes] of publication) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), bytes);
  }
  return folder;
}

/** How a request is answered instead: with this status, or by ending the connection. */
type Fault = number | 'end';

/** Serves a publication below /log; what is changed in it is served changed. */
export async function servePublication(test: Pick<TestContext, 'after'>, publication: Publication) {
  /** Every path that was asked for. */
  const asked: string[] = [];
  /** What goes wrong at the next request of a path. */
  const faults = new Map<string, Fault[]>();
  let [now, most] = [0, 0];
  const server = createServer((request, response) => {
    const path = request.url?.replace('/log/', '') ?? '';
    asked.push(path);
    now += 1;
    most = Math.max(most, now);
    response.on('close', () => {
      now -= 1;
    });
    const fault = faults.get(path)?.shift();
    const bytes = publication.get(path);
    if (fault === 'end') request.socket.destroy();
    else if (fault !== undefined) response.writeHead(fault, { location: 'http://127.0.0.1:9/' }).end();
    else response.writeHead(bytes === undefined ? 404 : 200).end(bytes);
  });
  const url = await listenLocally(test, server, () => server.closeAllConnections());
  return { url: `${url}/log`, asked, faults, mostAtOnce: () => most };
}
