import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { extname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { build, type Plugin } from 'esbuild';
import { addonAsset } from '../src/packaging/native-addon.ts';
import { licencesFile } from '../src/packaging/packaged-files.ts';
import { runtimePackages, thisMachine } from '../src/packaging/pinned-runtime.ts';
import { runtimeFlags } from '../src/packaging/runtime.ts';
import { licenceTexts } from './licenses.ts';
import { builtCommit, packagedFiles, projectFolder } from './project.ts';
import { runtimeFolder } from './runtime.ts';

/** Modules of the bundle that are others than in a checkout, by the end of their path. */
const replacements: Readonly<Record<string, string>> = {
  // It looks for the addon among the files of its package.
  '/better-sqlite3/lib/binding.js': "module.exports = require('./src/packaging/native-addon.ts');",
  // It hastens the search for modules, and there is none.
  '/src/packaging/module-resolution.ts': '',
};

/** Takes replacements in the place of modules. */
const replace: Plugin = {
  name: 'replace',
  setup: ({ onLoad }) => {
    onLoad({ filter: /\.[jt]s$/ }, ({ path }) => {
      const contents = Object.entries(replacements).find(([end]) => path.endsWith(end))?.[1];
      return contents === undefined ? undefined : { contents, resolveDir: projectFolder };
    });
  },
};

const dist = join(projectFolder, 'dist');
const { target = thisMachine } = parseArgs({ options: { target: { type: 'string' } } }).values;
const runtime = runtimePackages[target];
if (runtime === undefined) throw new Error(`--target is one of ${Object.keys(runtimePackages).join(', ')}.`);
const commit = builtCommit();
const parts = join(dist, `parts-${target}`);
const name = `artseal${target === thisMachine ? '' : `-${target}`}${extname(runtime.program)}`;
const executable = join(dist, name);
rmSync(parts, { recursive: true, force: true });
const modules = await bundle();
const folder = runtimeFolder(runtime.name);
writeFileSync(join(parts, licencesFile), licenceTexts(modules, [folder]));
assemble(join(folder, runtime.program));
rmSync(parts, { recursive: true });
const sha256 = hash('sha256', readFileSync(executable));
process.stdout.write(
  `dist/${name}: ${statSync(executable).size} bytes, commit ${commit}, SHA-256 ${sha256}\n`,
);

/** Puts the modules of the command into one file, and those of the store's thread into another; the paths of all of them. */
async function bundle(): Promise<readonly string[]> {
  const { metafile } = await build({
    absWorkingDir: projectFolder,
    entryPoints: ['src/main.ts', 'src/store/sqlite/thread.ts'],
    ...{ outbase: '.', outdir: parts, bundle: true, platform: 'node', format: 'esm', target: 'node26' },
    ...{
      minifySyntax: true,
      minifyWhitespace: true,
      legalComments: 'none',
      metafile: true,
      logLevel: 'warning',
    },
    // The paths of modules get into the file: they are the same where node_modules is a link to elsewhere.
    preserveSymlinks: true,
    define: { ARTSEAL_COMMIT: JSON.stringify(commit) },
    // What CommonJS modules ask for while they run is part of Node: nothing that lies beside the executable is loaded.
    banner: { js: 'const require=process.getBuiltinModule;' },
    plugins: [replace],
  });
  const inputs = Object.keys(metafile.inputs);
  const unused = Object.keys(replacements).filter((end) => !inputs.some((path) => `/${path}`.endsWith(end)));
  const outside = Object.values(metafile.outputs)
    .flatMap(({ imports }) => imports)
    .filter(({ path, external }) => external && !isBuiltin(path))
    .map(({ path }) => path);
  if (unused.length + outside.length > 0) {
    throw new Error(`The bundle is not as foreseen: it lacks ${[...unused, ...outside].join(', ')}.`);
  }
  return inputs;
}

/** Puts the bundle and the files that the service reads into a copy of the runtime. */
function assemble(program: string): void {
  const config = {
    // This path gets into the file.
    main: 'src/main.js',
    mainFormat: 'module',
    executable: program,
    output: executable,
    disableExperimentalSEAWarning: true,
    execArgv: runtimeFlags,
    // NODE_OPTIONS is for programs that are run with Node; this one is to do the same wherever it is started.
    execArgvExtension: 'none',
    assets: {
      [addonAsset]: join(projectFolder, 'node_modules', 'better-sqlite3', 'prebuilds', `${target}.node`),
      'src/store/sqlite/thread.js': 'src/store/sqlite/thread.js',
      [licencesFile]: licencesFile,
      ...Object.fromEntries(packagedFiles.map((path) => [path, join(projectFolder, path)])),
    },
  };
  writeFileSync(join(parts, 'config.json'), JSON.stringify(config));
  execFileSync(process.execPath, ['--build-sea', 'config.json'], {
    cwd: parts,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}
