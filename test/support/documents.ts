import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectFolder } from './artseal-command.ts';

/** The text of a document, or of its section with this heading. The path starts at the root of the project. */
export function documentText(document: string, heading?: string): string {
  const text = readFileSync(join(projectFolder, document), 'utf8');
  if (heading === undefined) return text;
  const sections = text.split(/^(?=## )/m);
  const section = sections.find((one) => one.startsWith(`## ${heading}\n`));
  if (section === undefined) throw new Error(`${document} has no section ${heading}`);
  return section;
}

/** The code blocks of a text in one language. */
export function codeBlocks(text: string, language: string): string[] {
  const block = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms');
  return Array.from(text.matchAll(block), ([, code = '']) => code);
}
