export * from './schema-callers.ts';
export * from './schema-deployment.ts';
export * from './schema-events.ts';
export * from './schema-filings.ts';
export * from './schema-orders.ts';
export * from './schema-registrations.ts';
