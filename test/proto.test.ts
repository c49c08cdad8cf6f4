import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type DescService, getOption } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import { AdminService } from '../gen/artseal/v1/admin_pb.ts';
import { EscrowService } from '../gen/artseal/v1/escrow_pb.ts';
import { EventService } from '../gen/artseal/v1/event_pb.ts';
import { EvidenceService } from '../gen/artseal/v1/evidence_pb.ts';
import { FilingService } from '../gen/artseal/v1/filing_pb.ts';
import { ProvenanceService } from '../gen/artseal/v1/provenance_pb.ts';
import { http } from '../gen/google/api/annotations_pb.ts';

const services: readonly DescService[] = [
  AdminService,
  EscrowService,
  EventService,
  EvidenceService,
  FilingService,
  ProvenanceService,
];

for (const { file, methods, typeName } of services) {
  test(`generated clients find ${typeName} in its old package`, () => {
    const { goPackage, javaPackage, javaMultipleFiles, csharpNamespace } = file.proto.options ?? {};
    assert.deepEqual(
      { goPackage, javaPackage, javaMultipleFiles, csharpNamespace },
      {
        goPackage: 'artseal.dev/artseal/v1;artsealv1',
        javaPackage: 'dev.artseal.v1',
        javaMultipleFiles: true,
        csharpNamespace: 'Artseal.V1',
      },
    );
  });

  for (const method of methods) {
    const { NO_SIDE_EFFECTS, IDEMPOTENCY_UNKNOWN } = MethodOptions_IdempotencyLevel;
    const reads = /^(Get|List|Watch)/.test(method.name);
    test(`${typeName}.${method.name} ${reads ? 'may' : 'may not'} be called with GET, in both APIs`, () => {
      assert.equal(method.idempotency, reads ? NO_SIDE_EFFECTS : IDEMPOTENCY_UNKNOWN);
      const route = getOption(method, http).pattern.case;
      if (route !== undefined) assert.equal(route === 'get', reads);
    });
  }
}
