const encoder = new TextEncoder();
const algorithm = { name: 'HMAC', hash: 'SHA-256' };
const nonceBytes = 16;

/** The parts of a request that its signature covers. */
export interface Unsigned {
  /** Upper case. */
  readonly method: string;
  /** The path with its query, exactly as sent. */
  readonly target: string;
  readonly body: Uint8Array<ArrayBuffer>;
  /** Unix seconds. */
  readonly timestampS: number;
}

/** Returns a function that makes the four headers of a request, with a new nonce each time. Works in Node and browsers. */
export function createSigning(apiKey: string, apiSecret: string) {
  const imported = crypto.subtle.importKey('raw', encoder.encode(apiSecret), algorithm, false, ['sign']);
  return async ({ method, target, body, timestampS }: Unsigned): Promise<Record<string, string>> => {
    const nonce = hex(crypto.getRandomValues(new Uint8Array(nonceBytes)));
    const bodyHash = hex(await crypto.subtle.digest('SHA-256', body));
    const message = encoder.encode(`${method}${target}${bodyHash}${timestampS}${nonce}`);
    return {
      'X-Api-Key': apiKey,
      'X-Timestamp': String(timestampS),
      'X-Nonce': nonce,
      'X-Signature': hex(await crypto.subtle.sign(algorithm.name, await imported, message)),
    };
  };
}

function hex(bytes: ArrayBuffer | Uint8Array): string {
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
