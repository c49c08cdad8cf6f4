import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getOption } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import { http } from '../gen/google/api/annotations_pb.ts';
import { services } from './support/services.ts';

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
    const { NO_SIDE_EFFECTS, IDEMPOTENT, IDEMPOTENCY_UNKNOWN } = MethodOptions_IdempotencyLevel;
    const reads = /^(Get|List|Watch|Verify|Check|Count)/.test(method.name);
    const writes = method.methodKind === 'server_streaming' ? IDEMPOTENT : IDEMPOTENCY_UNKNOWN;
    test(`${typeName}.${method.name} ${reads ? 'may' : 'may not'} be called with GET, in both APIs`, () => {
      assert.equal(method.idempotency, reads ? NO_SIDE_EFFECTS : writes);
      const route = getOption(method, http).pattern.case;
      if (route !== undefined) assert.equal(route === 'get', reads);
    });
  }
}
