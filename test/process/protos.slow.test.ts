import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { globSync, mkdirSync, readdirSync, readFileSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { projectFolder } from '../support/artseal-command.ts';
import { fileScope } from '../support/file-scope.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import { copyProject } from '../support/project-copy.ts';
import { serviceNames } from '../support/services.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const run = promisify(execFile);

describe('the archive of the protos', { timeout: 300_000 }, () => {
  /** The folder of the unpacked archive. */
  let folder = '';
  let archives: Buffer[] = [];

  before(async () => {
    const root = temporaryFolder(fileScope);
    const build = async (name: string): Promise<string> => {
      const project = join(root, name);
      copyProject(project);
      utimesSync(join(project, 'proto', 'artseal', 'v1', 'filing.proto'), new Date(), new Date());
      await run(process.execPath, ['build/protos.ts'], { cwd: project });
      return join(project, 'dist', String(readdirSync(join(project, 'dist'))));
    };
    const [one, other] = [await build('one'), await build('other')];
    archives = [readFileSync(one), readFileSync(other)];
    const empty = join(root, 'empty');
    mkdirSync(empty);
    await run('tar', ['-xzf', one, '-C', empty]);
    folder = join(empty, String(readdirSync(empty)));
  });

  test('has the same bytes whenever and wherever it is built', () => {
    assert.deepEqual(archives[0], archives[1]);
    assert.match(folder, /\/artseal-protos-\d+\.\d+\.\d+(-rc\.\d+)?$/);
  });

  test('has all services, and buf builds it without other files', async () => {
    const buf = join(projectFolder, 'node_modules', '.bin', 'buf');
    await run(buf, ['lint'], { cwd: folder });
    const { stdout } = await run(buf, ['build', '--output', '-#format=json'], {
      cwd: folder,
      maxBuffer: 1e8,
    });
    const image: { file: { package: string; service?: { name: string }[] }[] } = JSON.parse(stdout);
    const services = image.file.flatMap(({ package: name, service = [] }) =>
      service.map((each) => `${name}.${each.name}`),
    );
    assert.deepEqual(services.sort(), [...serviceNames, 'grpc.health.v1.Health']);
  });

  test('protoc generates code from it', { skip: skipUnlessInstalled('protoc') }, async () => {
    const out = join(folder, 'out');
    mkdirSync(out);
    const protos = globSync('**/*.proto', { cwd: folder });
    assert.ok(protos.length > 5);
    await run('protoc', ['--proto_path=.', `--python_out=${out}`, ...protos], { cwd: folder });
    assert.equal(globSync('**/*_pb2.py', { cwd: out }).length, protos.length);
  });
});
