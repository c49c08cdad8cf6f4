import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DescMethod } from '@bufbuild/protobuf';
import { getOption, hasOption } from '@bufbuild/protobuf';
import { AdminService } from '../../../gen/artseal/v1/admin_pb.ts';
import { EscrowService } from '../../../gen/artseal/v1/escrow_pb.ts';
import { EventService } from '../../../gen/artseal/v1/event_pb.ts';
import { EvidenceService } from '../../../gen/artseal/v1/evidence_pb.ts';
import { FilingService } from '../../../gen/artseal/v1/filing_pb.ts';
import { ProvenanceService } from '../../../gen/artseal/v1/provenance_pb.ts';
import { http } from '../../../gen/google/api/annotations_pb.ts';
import { enveloped } from '../../http/connect/raw-call.ts';
import { openLedger } from '../../support/ledger.ts';
import { assertRefused } from '../../support/rejected.ts';
import { artwork, escrowTerms } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { send } from '../../support/signed-request.ts';
import { bearer } from '../../support/typed-clients.ts';

const services = [
  FilingService,
  ProvenanceService,
  EvidenceService,
  EscrowService,
  EventService,
  AdminService,
];
const methods: readonly DescMethod[] = services.flatMap((service) => service.methods);

/** What each route takes when nothing is wrong, as far as it takes anything. */
const bodies: Record<string, object> = {
  '/api/v1/filing': artwork,
  '/api/v1/escrow': escrowTerms('AS-2026-000001'),
};

interface AnnotatedRoute {
  readonly method: DescMethod;
  readonly verb: string;
  readonly template: string;
  readonly hasBody: boolean;
}

const routes = methods
  .filter((method) => hasOption(method, http))
  .map((method): AnnotatedRoute => {
    const { pattern, body } = getOption(method, http);
    assert.ok(typeof pattern.value === 'string');
    return {
      method,
      verb: String(pattern.case).toUpperCase(),
      template: pattern.value,
      hasBody: body !== '',
    };
  });

const unknownNames = ['misspelt', 'colour', '__proto__', 'constructor', 'toString', 'x'.repeat(100)];

test('there are annotated routes to test', () => {
  assert.ok(routes.length >= 3);
});

for (const { method, verb, template, hasBody } of routes) {
  const target = template.replace(/\{\w+\}/g, 'AS-2026-000001');
  const body = bodies[template] ?? {};
  const request = (over: object = {}, query = '') => ({
    method: verb,
    target: `${target}${query}`,
    ...(hasBody || Object.keys(over).length > 0 ? { body: JSON.stringify({ ...over, ...body }) } : {}),
  });

  test(`${verb} ${template} rejects unknown parameters, naming each`, async (t) => {
    const service = await startService(t);
    const ledger = openLedger(t, service);
    const platform = await service.platform();
    for (const name of unknownNames) {
      const answer = await send(service.publicUrl, platform, request({}, `?${name}=1`));
      assertRefused(answer, 400, 'VALIDATION_FAILED', new RegExp(`^${name.slice(0, 60)}.* is not part`));
    }
    const both = await send(service.publicUrl, platform, request({}, '?one=1&two='));
    assertRefused(both, 400, 'VALIDATION_FAILED', /one is not part/, /two is not part/);
    assert.deepEqual(ledger.holdings(), { filings: 0, records: 0, escrows: 0, orderNumbers: 0 });
  });

  if (verb === 'POST') {
    test(`${verb} ${template} rejects unknown members, naming each`, async (t) => {
      const service = await startService(t);
      const ledger = openLedger(t, service);
      const platform = await service.platform();
      for (const name of unknownNames) {
        const answer = await send(service.publicUrl, platform, request({ [name]: 1 }));
        assertRefused(answer, 400, 'VALIDATION_FAILED', new RegExp(`^${name.slice(0, 60)}.* is not part`));
      }
      assert.deepEqual(ledger.holdings(), { filings: 0, records: 0, escrows: 0, orderNumbers: 0 });
    });

    test(`${verb} ${template} knows its members by their documented names alone`, async (t) => {
      const service = await startService(t);
      const platform = await service.platform();
      for (const { name, jsonName } of method.input.fields) {
        const others = [name, jsonName.toUpperCase(), ` ${jsonName}`].filter((other) => other !== jsonName);
        for (const other of others) {
          const answer = await send(service.publicUrl, platform, request({ [other]: 'x' }));
          assertRefused(answer, 400, 'VALIDATION_FAILED', new RegExp(`${other} is not part of this request`));
        }
      }
    });
  } else if (verb === 'GET') {
    test(`${verb} ${template} rejects a body`, async (t) => {
      const service = await startService(t);
      const answer = await send(service.publicUrl, await service.platform(), {
        ...request(),
        body: '{}',
        headers: { 'Content-Length': '2' },
      });
      assertRefused(answer, 400, 'VALIDATION_FAILED', /^body must be empty/);
    });
  }

  for (const { name, jsonName } of method.input.fields.filter((field) =>
    template.includes(`{${field.name}}`),
  )) {
    test(`${verb} ${template} takes ${jsonName} from its path alone`, async (t) => {
      const service = await startService(t);
      const platform = await service.platform();
      for (const parameter of new Set([name, jsonName])) {
        const answer = await send(service.publicUrl, platform, request({}, `?${parameter}=AS-2026-000002`));
        assertRefused(answer, 400, 'VALIDATION_FAILED', new RegExp(parameter));
      }
    });
  }
}

for (const { parent, name, methodKind } of methods) {
  test(`the internal API rejects an unknown field of ${parent.name}.${name}`, async (t) => {
    const service = await startService(t);
    const body = '{"misspelt":1}';
    const [type, sent] = methodKind === 'unary' ? ['json', body] : ['connect+json', enveloped(body)];
    const answer = await fetch(`${service.internalUrl}/${parent.typeName}/${name}`, {
      method: 'POST',
      headers: { 'Content-Type': `application/${type}`, ...bearer(await service.token(true)) },
      body: sent,
    });
    const text = await answer.text();
    assert.match(text, /misspelt is not part of this request/);
    assert.match(text, /"code":"invalid_argument"/);
  });
}
