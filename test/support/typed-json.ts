/** An answer of the internal door to a JSON request. */
export interface TypedAnswer {
  readonly status: number;
  readonly requestId: string | null;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  readonly json: any;
}

/** Makes a Connect call in JSON, with nothing of the service's own client. */
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
