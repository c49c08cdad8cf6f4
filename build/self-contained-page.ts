import { hash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { licenceTexts } from './licenses.ts';
import { projectFolder } from './project.ts';

/** A page of one file, with its script and style. */
export interface SelfContainedPage {
  /** The folder with page.html, page.css and the script: a path from the project's root. */
  readonly source: string;
  /** The module of the script; page.ts if it is not given. */
  readonly entry?: string;
  /** Whether its script is minified. If not, people can read what it does. */
  readonly isMinified?: boolean;
  /** Matches the paths of the modules that its script may contain. */
  readonly modules: RegExp;
  /** Style sheets besides page.css, which follows them: paths from the project's root. */
  readonly styles?: readonly string[];
  /** Directives of its Content-Security-Policy besides those of every page. */
  readonly policy?: readonly string[];
  /** Global constants of its script, as JavaScript. */
  readonly define?: Readonly<Record<string, string>>;
}

/** Writes a page into a file. */
export async function writePage(page: SelfContainedPage, file: string): Promise<void> {
  const { source, entry = 'page.ts', isMinified: minify = false, modules } = page;
  const { styles = [], policy: directives = [], define = {} } = page;
  const { outputFiles, metafile } = await build({
    absWorkingDir: projectFolder,
    entryPoints: [join(source, entry)],
    ...{ bundle: true, write: false, platform: 'browser', format: 'iife', target: 'es2022', charset: 'utf8' },
    ...{ legalComments: 'none', metafile: true, logLevel: 'warning', define, minify },
    ...{ jsx: 'automatic', jsxImportSource: 'preact' },
    // The paths of modules get into the file: they are the same where node_modules is a link to elsewhere.
    preserveSymlinks: true,
  });
  const strangers = Object.keys(metafile.inputs).filter((path) => !modules.test(path));
  if (strangers.length > 0) throw new Error(`The page may not have ${strangers.join(', ')} in it.`);
  const licences = licenceTexts(Object.keys(metafile.inputs), []);
  const script = `\n/*\n${licences}*/\n${outputFiles[0]?.text ?? ''}`;
  // Nothing in it may end the element that it stands in.
  if (/<\/script|<!--/i.test(script)) throw new Error('The script has the end of a script in it.');
  const read = (path: string): string => readFileSync(join(projectFolder, path), 'utf8');
  const style = `\n${[...styles, join(source, 'page.css')].map(read).join('')}`;
  const hashOf = (text: string): string => `'sha256-${hash('sha256', text, 'base64')}'`;
  // Its own script and style, and else nothing.
  const policy = [
    "default-src 'none'",
    `script-src ${hashOf(script)}`,
    `style-src ${hashOf(style)}`,
    ...directives,
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
  ].join('; ');
  const html = read(join(source, 'page.html'))
    .replace('Content-Security-Policy" content="', () => `Content-Security-Policy" content="${policy}`)
    .replace('<style>', () => `<style>${style}`)
    .replace('<script>', () => `<script>${script}`);
  writeFileSync(file, html);
}
