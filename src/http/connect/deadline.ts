/** The longest deadline of a call, in milliseconds. */
export const deadlineMsMax = 60_000;

/** Milliseconds of the units of grpc-timeout (gRPC over HTTP/2, "Timeout"). */
const unitsMs: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/**
 * Shortens the deadline in the headers of a request to `deadlineMsMax`: Connect-Timeout-Ms (Connect protocol) and
 * grpc-timeout (gRPC, gRPC-Web). The library rejects malformed values.
 */
export function shortenDeadline(headers: Headers): void {
  const [connectMs] = /^[0-9]{1,10}$/.exec(headers.get('Connect-Timeout-Ms') ?? '') ?? [];
  if (Number(connectMs) > deadlineMsMax) headers.set('Connect-Timeout-Ms', String(deadlineMsMax));
  const [, amount, unit = ''] = /^([0-9]{1,8})([HMSmun])$/.exec(headers.get('grpc-timeout') ?? '') ?? [];
  if (Number(amount) * (unitsMs[unit] ?? 0) > deadlineMsMax) headers.set('grpc-timeout', `${deadlineMsMax}m`);
}
