import type { ApiCredentials } from '../../src/client/sign.ts';
import { eventually } from './eventually.ts';
import { artwork, escrowTerms } from './samples.ts';
import { type RestAnswer, type SignedRequest, send } from './signed-request.ts';

/** What a documented call may differ in. */
export type CallOptions = Omit<SignedRequest, 'target' | 'method'> & { readonly target?: string };

interface ListenerName {
  readonly publicUrl: string;
}

/** POST /api/v1/filing, by default with the artwork of the documentation. */
export function fileArtwork(
  { publicUrl }: ListenerName,
  platform: ApiCredentials,
  options: CallOptions = {},
): Promise<RestAnswer> {
  return send(publicUrl, platform, { target: '/api/v1/filing', body: JSON.stringify(artwork), ...options });
}

/** Makes the call of a path with an id, which is sent as given. */
const callOf =
  (method: string, targetOf: (id: string) => string) =>
  (
    { publicUrl }: ListenerName,
    platform: ApiCredentials,
    id: string,
    options: CallOptions = {},
  ): Promise<RestAnswer> =>
    send(publicUrl, platform, { method, target: targetOf(id), ...options });

/** GET /api/v1/provenance/{filingNo}. */
export const askProvenance = callOf('GET', (filingNo) => `/api/v1/provenance/${filingNo}`);

const askEvidence = callOf('GET', (filingNo) => `/api/v1/filing/${filingNo}/evidence`);

/** GET /api/v1/filing/{filingNo}/evidence, again until a checkpoint covers it. */
export const getEvidence: typeof askEvidence = (...call) =>
  eventually('evidence', 60_000, async () => {
    const answer = await askEvidence(...call);
    return answer.status !== 503 && answer;
  });

/** GET /api/v1/escrow/{escrowId}. */
export const getEscrow = callOf('GET', (escrowId) => `/api/v1/escrow/${escrowId}`);

/** POST /api/v1/escrow/{escrowId}/release. */
export const releaseEscrow = callOf('POST', (escrowId) => `/api/v1/escrow/${escrowId}/release`);

/** POST /api/v1/escrow/{escrowId}/refund. */
export const refundEscrow = callOf('POST', (escrowId) => `/api/v1/escrow/${escrowId}/refund`);

/** POST /api/v1/escrow with the terms of the documentation, and where they differ. */
export function openEscrow(
  { publicUrl }: ListenerName,
  platform: ApiCredentials,
  filingNo: string,
  terms: object = {},
  options: CallOptions = {},
): Promise<RestAnswer> {
  const body = JSON.stringify({ ...escrowTerms(filingNo), ...terms });
  return send(publicUrl, platform, { target: '/api/v1/escrow', body, ...options });
}

/** The escrow id that an error names. */
export function escrowIdIn({ json }: RestAnswer): string {
  const [escrowId] = /ES-\d{4}-[0-9A-Z]{4}/.exec(json.message) ?? [];
  if (escrowId === undefined) throw new Error(`No escrow is named: ${json.message}`);
  return escrowId;
}

/** The JSON of an object, one member of which is written as given. */
export function jsonWith(object: object, member: string, json: string): string {
  const members = Object.entries({ ...object, [member]: undefined }).map(([name, value]) => {
    const written = name === member ? json : JSON.stringify(value);
    return `${JSON.stringify(name)}:${written}`;
  });
  return `{${members.join(',')}}`;
}
