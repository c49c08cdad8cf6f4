import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { generate, openApiPath, run } from '../../build/client-generator.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { assertSale } from './client-program.ts';

const programs = join(import.meta.dirname, 'generated');
const maven = (...words: string[]) => run('mvn', ['--quiet', '--batch-mode', ...words]);

/** Generates a client with the defaults of the generator. Resolves with its folder. */
async function generateClient(t: TestContext, language: string, ...options: string[]): Promise<string> {
  const client = join(temporaryFolder(t), 'client');
  await generate(language, openApiPath, client, ...options);
  return client;
}

/** A program with the client of a language: what must be installed, and what generates and starts it. */
interface Language {
  readonly needs: readonly string[];
  /** The command and, if it is not that of this process, its environment; undefined with the test skipped. */
  prepare(t: TestContext): Promise<{ command: string[]; env?: NodeJS.ProcessEnv } | undefined>;
}

const languages: Readonly<Record<string, Language>> = {
  Go: {
    needs: ['mvn', 'java', 'go'],
    prepare: async (t) => {
      const module = '--git-host artseal.example --git-user-id platform --git-repo-id client';
      const client = await generateClient(t, 'go', ...module.split(' '));
      mkdirSync(join(client, 'calls'));
      copyFileSync(join(programs, 'calls.go'), join(client, 'calls', 'main.go'));
      return { command: ['go', 'run', '-C', client, './calls'] };
    },
  },
  Java: {
    needs: ['mvn', 'javac'],
    prepare: async (t) => {
      const client = await generateClient(t, 'java');
      const libraries = join(client, 'libraries');
      const pom = ['--file', join(client, 'pom.xml')];
      const output = ['-DincludeScope=compile', `-DoutputDirectory=${libraries}`];
      await maven(...pom, 'dependency:copy-dependencies', ...output);
      const classes = join(client, 'classes');
      const path = [classes, join(libraries, '*')].join(':');
      const sources = ['-sourcepath', join(client, 'src', 'main', 'java'), join(programs, 'Calls.java')];
      await run('javac', ['-nowarn', '-encoding', 'UTF-8', '-classpath', path, '-d', classes, ...sources]);
      return { command: ['java', '-classpath', path, 'Calls'] };
    },
  },
  PHP: {
    needs: ['mvn', 'java', 'php'],
    prepare: async (t) => ({ command: ['php', join(programs, 'calls.php'), await generateClient(t, 'php')] }),
  },
  Ruby: {
    needs: ['mvn', 'java', 'ruby'],
    prepare: async (t) => {
      // Each object of Ruby has a method `hash`.
      const client = await generateClient(t, 'ruby', '--name-mappings', 'hash=evidence_hash');
      return { command: ['ruby', '-I', join(client, 'lib'), join(programs, 'calls.rb')] };
    },
  },
};

for (const [language, { needs, prepare }] of Object.entries(languages)) {
  const title = `a ${language} client generated from openapi.yaml makes its calls, drops nothing and takes later members`;
  test(title, { skip: skipUnlessInstalled(...needs) }, async (t) => {
    const { command: [program = '', ...words] = [], env } = (await prepare(t)) ?? {};
    if (program !== '') await assertSale(t, program, words, env);
  });
}
