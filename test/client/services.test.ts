import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import * as client from '../../src/client/index.ts';
import { projectFolder } from '../support/artseal-command.ts';

const protos = globSync('proto/artseal/v1/*.proto', { cwd: projectFolder });
const services = protos.flatMap((file) => {
  const text = readFileSync(join(projectFolder, file), 'utf8');
  return [...text.matchAll(/^service (\w+) \{$/gm)].map(([, name = '']) => name);
});

test('artseal/client exports every service of the protos', () => {
  assert.ok(services.length >= 7, services.join());
  const exported = Object.entries(client).flatMap(([name, value]) =>
    typeof value === 'object' && 'typeName' in value && value.typeName === `artseal.v1.${name}` ? [name] : [],
  );
  assert.deepEqual(
    services.filter((name) => !exported.includes(name)),
    [],
  );
});
