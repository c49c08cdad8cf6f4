import { hash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { licenceTexts } from './licenses.ts';
import { projectFolder } from './project.ts';

/**
 * Writes the page on which people check evidence bundles: one file with all that it needs, into docs/verify.html or the file
 * that is named. It is not minified: who wants to know what it does can read it.
 */
const source = join(projectFolder, 'build', 'verify-page');
const { outputFiles, metafile } = await build({
  absWorkingDir: projectFolder,
  entryPoints: [join(source, 'page.ts')],
  ...{ bundle: true, write: false, platform: 'browser', format: 'iife', target: 'es2022', charset: 'utf8' },
  ...{ legalComments: 'none', metafile: true, logLevel: 'warning' },
  // The paths of modules get into the file: they are the same where node_modules is a link to elsewhere.
  preserveSymlinks: true,
});
const strangers = Object.keys(metafile.inputs).filter(
  (path) => !/^(build\/verify-page|src\/evidence\/(formats|verifier)|node_modules\/@noble)\//.test(path),
);
if (strangers.length > 0) throw new Error(`The page may not have ${strangers.join(', ')} in it.`);
const licences = licenceTexts(Object.keys(metafile.inputs), []);
const script = `\n/*\n${licences}*/\n${outputFiles[0]?.text ?? ''}`;
// Nothing in it may end the element that it stands in.
if (/<\/script|<!--/i.test(script)) throw new Error('The script has the end of a script in it.');
const style = `\n${readFileSync(join(source, 'page.css'), 'utf8')}`;
const hashOf = (text: string): string => `'sha256-${hash('sha256', text, 'base64')}'`;
// Its own script and style, and else nothing: no request to anywhere.
const policy = [
  "default-src 'none'",
  `script-src ${hashOf(script)}`,
  `style-src ${hashOf(style)}`,
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
].join('; ');
const page = readFileSync(join(source, 'page.html'), 'utf8')
  .replace('Content-Security-Policy" content="', () => `Content-Security-Policy" content="${policy}`)
  .replace('<style>', () => `<style>${style}`)
  .replace('<script>', () => `<script>${script}`);
writeFileSync(process.argv[2] ?? join(projectFolder, 'docs', 'verify.html'), page);
