import { type ApiCredentials, signedHeaders } from './sign.ts';

/** Calls the signed REST routes of one service. */
export interface RestClient {
  /**
   * Sends a signed request; `body` is sent as JSON exactly as given, `more` are further headers, such as an
   * Idempotency-Key, and `signal` cancels the request. The response may be an error.
   */
  send(
    method: string,
    target: string,
    body?: string | Uint8Array,
    more?: Readonly<Record<string, string>>,
    signal?: AbortSignal,
  ): Promise<Response>;
}

/** A client for a service at `baseUrl`, for example http://127.0.0.1:8080. */
export function createRestClient(baseUrl: string, credentials: ApiCredentials): RestClient {
  const { origin } = new URL(baseUrl);
  return {
    send: (method, target, body, more = {}, signal) => {
      const headers = signedHeaders(credentials, { method, target, body: body ?? '' });
      const type = { [body === undefined ? 'Accept' : 'Content-Type']: 'application/json' };
      // Not resolved against the base: a target such as //host would name another server.
      return fetch(`${origin}${target}`, {
        method,
        headers: { ...more, ...headers, ...type },
        signal: signal ?? null,
        body: body instanceof Uint8Array ? new Uint8Array(body) : (body ?? null),
      });
    },
  };
}
