import type { InstitutionKind } from './institution.ts';
import { mangopay } from './mangopay/settings.ts';
import { simulated } from './simulated/settings.ts';
import { stripe } from './stripe/settings.ts';

/** The institutions that a deployment can choose. */
export const institutions: readonly InstitutionKind[] = [simulated, stripe, mangopay];
