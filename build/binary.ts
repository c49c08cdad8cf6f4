import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { globSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { addonAsset } from '../src/packaging/native-addon.ts';
import { fontFile, fontPackage, fontRanges, licencesFile } from '../src/packaging/packaged-files.ts';
import { runtimePackages, thisMachine } from '../src/packaging/pinned-runtime.ts';
import { runtimeFlags } from '../src/packaging/runtime.ts';
import { licenceTexts } from './licenses.ts';
import { builtCommit, packagedFiles, projectFolder } from './project.ts';

// Makes dist/artseal, an executable for this machine: the bundled modules inside a copy of the pinned Node.

/** Modules that the bundle replaces, by the end of their path. */
const replacements: Readonly<Record<string, string>> = {
  // The original looks for the addon among the files of its package.
  '/better-sqlite3/lib/binding.js': "module.exports = require('./src/packaging/native-addon.ts');",
  // The client of libpq, which is an addon: the one in JavaScript is used.
  '/pg/lib/native/index.js': '',
  // It reads its colour profile from a file. The version for browsers has it inside.
  '/pdfkit/js/pdfkit.node.mjs': "export { default } from './node_modules/pdfkit/js/pdfkit.browser.mjs';",
  // They speed up the loading of modules from files, of which a bundle has none.
  '/src/packaging/module-resolution.ts': '',
  '/src/packaging/startup.ts': '',
};

const replace: Plugin = {
  name: 'replace',
  setup: ({ onLoad }) => {
    onLoad({ filter: /\.m?[jt]s$/ }, ({ path }) => {
      const contents = Object.entries(replacements).find(([end]) => path.endsWith(end))?.[1];
      return contents === undefined ? undefined : { contents, resolveDir: projectFolder };
    });
  },
};

/** The modules of worker threads. */
const threads = ['src/store/sqlite/thread', 'src/evidence/certificate/thread'];

const dist = join(projectFolder, 'dist');
const runtime = runtimePackages[thisMachine];
if (process.platform !== 'linux' || runtime === undefined)
  throw new Error(`The executable is built on Linux x64 or arm64, not on ${thisMachine}.`);
const commit = builtCommit();
const parts = join(dist, 'parts');
const executable = join(dist, 'artseal');
rmSync(parts, { recursive: true, force: true });
const modules = await bundle();
const folder = join(projectFolder, 'node_modules', runtime.name);
const fonts = join(projectFolder, 'node_modules', fontPackage);
writeFileSync(join(parts, licencesFile), licenceTexts(modules, [folder, fonts]));
assemble(join(folder, runtime.program));
rmSync(parts, { recursive: true });
const sha256 = hash('sha256', readFileSync(executable));
process.stdout.write(
  `dist/artseal: ${statSync(executable).size} bytes, commit ${commit}, SHA-256 ${sha256}\n`,
);

/** Bundles the command and the threads into one file each. Returns the paths of all modules. */
async function bundle(): Promise<readonly string[]> {
  const { metafile } = await build({
    absWorkingDir: projectFolder,
    entryPoints: ['src/main.ts', ...threads.map((thread) => `${thread}.ts`)],
    ...{ outbase: '.', outdir: parts, bundle: true, platform: 'node', format: 'esm', target: 'node26' },
    ...{
      minifySyntax: true,
      minifyWhitespace: true,
      legalComments: 'none',
      metafile: true,
      logLevel: 'warning',
    },
    // Module paths become part of the file. They must not depend on where a link to node_modules leads.
    preserveSymlinks: true,
    define: { ARTSEAL_COMMIT: JSON.stringify(commit) },
    // CommonJS modules may require only what Node has built in: no file beside the executable is ever loaded.
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
    throw new Error(`These modules are not in the bundle: ${[...unused, ...outside].join(', ')}.`);
  }
  return inputs;
}

/** The files of the font of certificates, by their names in the executable. */
function fontAssets(): Record<string, string> {
  const folder = join(projectFolder, 'node_modules', fontPackage);
  const slices = globSync(fontFile('*'), { cwd: folder }).sort();
  return Object.fromEntries(
    [fontRanges, ...slices].map((file) => [`${fontPackage}/${file}`, join(folder, file)]),
  );
}

/** Puts the bundle and the packaged files into a copy of the runtime. */
function assemble(program: string): void {
  const config = {
    // This path becomes part of the file.
    main: 'src/main.js',
    mainFormat: 'module',
    executable: program,
    output: executable,
    disableExperimentalSEAWarning: true,
    execArgv: runtimeFlags,
    // The executable ignores NODE_OPTIONS, so that it behaves the same everywhere.
    execArgvExtension: 'none',
    assets: {
      [addonAsset]: join(projectFolder, 'node_modules', 'better-sqlite3', 'prebuilds', `${thisMachine}.node`),
      ...Object.fromEntries(threads.map((thread) => [`${thread}.js`, `${thread}.js`])),
      ...fontAssets(),
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
