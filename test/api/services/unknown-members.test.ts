import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DescMethod } from '@bufbuild/protobuf';
import { AdminService } from '../../../gen/artseal/v1/admin_pb.ts';
import { EscrowService } from '../../../gen/artseal/v1/escrow_pb.ts';
import { EventService } from '../../../gen/artseal/v1/event_pb.ts';
import { EvidenceService } from '../../../gen/artseal/v1/evidence_pb.ts';
import { FilingService } from '../../../gen/artseal/v1/filing_pb.ts';
import { ProvenanceService } from '../../../gen/artseal/v1/provenance_pb.ts';
import { WebhookService } from '../../../gen/artseal/v1/webhook_pb.ts';
import { rejectViolations } from '../../../src/domain/violation.ts';
import { strictProtoJson } from '../../../src/http/connect/requests.ts';
import { parseRequestTarget } from '../../../src/http/rest/http-message.ts';
import { createRoutes, findRoute } from '../../../src/http/rest/routes.ts';
import { apiError } from '../../support/rejected.ts';

const services = [
  FilingService,
  ProvenanceService,
  EvidenceService,
  EscrowService,
  EventService,
  WebhookService,
  AdminService,
];
const methods: readonly DescMethod[] = services.flatMap((service) => service.methods);
const routes = createRoutes(services);
const unknownNames = ['misspelt', '__proto__', 'constructor', 'x'.repeat(100)];

const unknown = (name: string) =>
  apiError('VALIDATION_FAILED', new RegExp(`(^|; )${name.slice(0, 60)}.* is not part`));

test('every service has routes, except the one for operators', () => {
  const withRoutes = new Set(routes.map(({ method }) => method.parent));
  assert.deepEqual(
    services.filter((service) => !withRoutes.has(service)),
    [AdminService],
  );
});

for (const { method, verb, template, body } of routes) {
  /** Reads a request of this route. Throws VALIDATION_FAILED. */
  function read(query: string, members?: object): void {
    const target = parseRequestTarget(`${template.replace(/\{\w+\}/g, '1')}${query}`);
    const bytes = Buffer.from(members === undefined ? '' : JSON.stringify(members));
    rejectViolations(findRoute(routes, verb, target).read(target, bytes).violations);
  }
  const isInBody = body !== 'NONE';
  const inPath = method.input.fields.filter(({ name }) => template.includes(`{${name}}`));

  test(`${verb} ${template} rejects unknown parameters by name`, () => {
    const members = isInBody ? {} : undefined;
    for (const name of unknownNames) assert.throws(() => read(`?${name}=1`, members), unknown(name));
    const both = apiError('VALIDATION_FAILED', /one is not part.*two is not part/);
    assert.throws(() => read('?one=1&two=', members), both);
    for (const { name, jsonName } of inPath) {
      for (const parameter of new Set([name, jsonName])) {
        assert.throws(
          () => read(`?${parameter}=1`, members),
          apiError('VALIDATION_FAILED', new RegExp(parameter)),
        );
      }
    }
  });

  test(`${verb} ${template} ${isInBody ? 'rejects unknown members by name' : 'rejects a body'}`, () => {
    if (!isInBody)
      return assert.throws(() => read('', {}), apiError('VALIDATION_FAILED', /body must be empty/));
    for (const name of unknownNames) assert.throws(() => read('', { [name]: 1 }), unknown(name));
    for (const { name, jsonName } of method.input.fields) {
      for (const other of [name, jsonName.toUpperCase(), ` ${jsonName}`]) {
        if (other !== jsonName) assert.throws(() => read('', { [other]: 'x' }), unknown(other));
      }
    }
  });
}

for (const method of methods) {
  test(`the internal API rejects an unknown field of ${method.parent.name}.${method.name}`, () => {
    const { textDecoder } = strictProtoJson(method.input);
    assert.throws(() => textDecoder.decode(Buffer.from('{"misspelt":1}')), unknown('misspelt'));
  });
}
