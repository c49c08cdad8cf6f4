import { execFileSync } from 'node:child_process';
import { copyFileSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { projectFolder } from './project.ts';

// Makes dist/artseal-protos-<version>.tar.gz: the protos with all that they import.

const { version } = JSON.parse(readFileSync(join(projectFolder, 'package.json'), 'utf8'));
const name = `artseal-protos-${version}`;
const dist = join(projectFolder, 'dist');
const folder = join(dist, name);

/** Paths in the archive, and their sources in the project. */
const contents = new Map([
  ...globSync('artseal/v1/*.proto', { cwd: join(projectFolder, 'proto') }).map(
    (path) => [path, `proto/${path}`] as const,
  ),
  // Debian's protoc comes without the protos of google.protobuf.
  ...['protobuf/any', 'protobuf/descriptor', 'protobuf/duration']
    .concat('api/annotations', 'api/http', 'api/httpbody', 'rpc/error_details')
    .map((name) => `google/${name}.proto`)
    .map((path) => [path, `node_modules/google-proto-files/${path}`] as const),
  ['grpc/health/v1/health.proto', 'node_modules/grpc-health-check/proto/health/v1/health.proto'],
]);
const bufYaml =
  'version: v2\nlint:\n  use: [STANDARD]\n  except: [ENUM_VALUE_PREFIX]\n  ignore: [google, grpc]\n';

rmSync(folder, { recursive: true, force: true });
for (const [path, source] of contents) {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  copyFileSync(join(projectFolder, source), join(folder, path));
}
writeFileSync(join(folder, 'buf.yaml'), bufYaml);
// Options that make the archive reproducible.
const reproducible = [
  '--sort=name',
  '--mtime=@0',
  '--owner=0',
  '--group=0',
  '--numeric-owner',
  '--mode=u=rwX,go=rX',
];
const archive = execFileSync('tar', ['--create', '--format=ustar', ...reproducible, name], { cwd: dist });
writeFileSync(`${folder}.tar.gz`, gzipSync(archive));
rmSync(folder, { recursive: true });
process.stdout.write(`dist/${name}.tar.gz\n`);
