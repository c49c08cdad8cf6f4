import { execFileSync } from 'node:child_process';
import { copyFileSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { projectFolder } from './project.ts';

// Puts the protos, and all that they import, into dist/artseal-protos-<version>.tar.gz.

const { version } = JSON.parse(readFileSync(join(projectFolder, 'package.json'), 'utf8'));
const name = `artseal-protos-${version}`;
const dist = join(projectFolder, 'dist');
const folder = join(dist, name);

/** What is in it, and where that is in the project; a test finds out if an import is missing. */
const contents = new Map([
  ...globSync('artseal/v1/*.proto', { cwd: join(projectFolder, 'proto') }).map(
    (path) => [path, `proto/${path}`] as const,
  ),
  // Those of google.protobuf as well: Debian has protoc without them.
  ...['protobuf/descriptor', 'protobuf/duration', 'api/annotations', 'api/http', 'rpc/error_details']
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
// The same bytes, whoever builds it when.
const sameAlways = [
  '--sort=name',
  '--mtime=@0',
  '--owner=0',
  '--group=0',
  '--numeric-owner',
  '--mode=u=rwX,go=rX',
];
const archive = execFileSync('tar', ['--create', '--format=ustar', ...sameAlways, name], { cwd: dist });
writeFileSync(`${folder}.tar.gz`, gzipSync(archive));
rmSync(folder, { recursive: true });
process.stdout.write(`dist/${name}.tar.gz\n`);
