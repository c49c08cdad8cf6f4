import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import * as go from '../clients/go/build.ts';
import * as java from '../clients/java/build.ts';
import * as php from '../clients/php/build.ts';
import * as python from '../clients/python/build.ts';
import * as typescript from '../clients/typescript/build.ts';
import { projectFolder } from './project.ts';

// Writes the packages of the client kits that are named, or of all of them, to dist/clients.

const kits = new Map(Object.entries({ go, java, php, python, typescript }));

const outputFolder = join(projectFolder, 'dist', 'clients');
mkdirSync(outputFolder, { recursive: true });
const named = process.argv.slice(2);
for (const name of named.length > 0 ? named : kits.keys()) {
  const kit = kits.get(name);
  if (kit === undefined) throw new Error(`There is no kit ${name}, only ${[...kits.keys()].join(', ')}.`);
  process.stdout.write(`${await kit.build(outputFolder)}\n`);
}
