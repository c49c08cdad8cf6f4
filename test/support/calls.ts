import type { ApiCredentials } from '../../src/client/sign.ts';
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

/** GET /api/v1/provenance/{filingNo}; the number is sent as given. */
export function askProvenance(
  { publicUrl }: ListenerName,
  platform: ApiCredentials,
  filingNo: string,
  options: CallOptions = {},
): Promise<RestAnswer> {
  return send(publicUrl, platform, { target: `/api/v1/provenance/${filingNo}`, ...options });
}

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

/** GET /api/v1/escrow/{escrowId}; the id is sent as given. */
export function getEscrow(
  { publicUrl }: ListenerName,
  platform: ApiCredentials,
  escrowId: string,
  options: CallOptions = {},
): Promise<RestAnswer> {
  return send(publicUrl, platform, { target: `/api/v1/escrow/${escrowId}`, ...options });
}

/** POST /api/v1/escrow/{escrowId}/release. */
export function releaseEscrow(
  { publicUrl }: ListenerName,
  platform: ApiCredentials,
  escrowId: string,
  options: CallOptions = {},
): Promise<RestAnswer> {
  const target = `/api/v1/escrow/${escrowId}/release`;
  return send(publicUrl, platform, { method: 'POST', target, ...options });
}

/** POST /api/v1/escrow/{escrowId}/refund. */
export function refundEscrow(
  { publicUrl }: ListenerName,
  platform: ApiCredentials,
  escrowId: string,
  options: CallOptions = {},
): Promise<RestAnswer> {
  const target = `/api/v1/escrow/${escrowId}/refund`;
  return send(publicUrl, platform, { method: 'POST', target, ...options });
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
