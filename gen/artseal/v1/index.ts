export * from './admin_pb.ts';
export * from './escrow_pb.ts';
export * from './event_pb.ts';
export * from './evidence_pb.ts';
export * from './filing_pb.ts';
export * from './provenance_pb.ts';
export * from './review_pb.ts';
export * from './webhook_pb.ts';
