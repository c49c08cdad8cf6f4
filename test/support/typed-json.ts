/** A response of the internal API to a JSON request. */
export interface TypedAnswer {
  readonly status: number;
  readonly requestId: string | null;
  // biome-ignore lint/suspicious/noExplicitAny: responses have every shape.
  readonly json: any;
}

/** Makes a Connect call in JSON, without the client of the service. */
export async function typedCall(
  internalUrl: string,
  token: string,
  method: string,
  message: object,
): Promise<TypedAnswer> {
  const answer = await fetch(`${internalUrl}/artseal.v1.${method}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
    body: JSON.stringify(message),
  });
  return { status: answer.status, requestId: answer.headers.get('X-Request-Id'), json: await answer.json() };
}
