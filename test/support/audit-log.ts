import type { Actor } from '../../src/domain/audit-entry.ts';

/** The actor of changes in tests. */
export const tester: Actor = { actor: 'user tester (1000)', atS: 1_790_000_000, reason: undefined };
