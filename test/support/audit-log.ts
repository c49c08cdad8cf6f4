import type { Actor } from '../../src/domain/audit-entry.ts';

/** Whoever changes something in a test, at an instant like any other. */
export const tester: Actor = { actor: 'user tester (1000)', atS: 1_790_000_000, reason: undefined };
