import { fromBER, Integer, Null, OctetString, Sequence } from 'asn1js';
import { AlgorithmIdentifier, MessageImprint, TimeStampReq, TimeStampResp } from 'pkijs';
import { isSame, utf8 } from './encoding.ts';
import { oids, readAuthorities, verifyToken } from './time-stamp.ts';
import { sha256Of } from './tree.ts';

/** Queries to a time-stamping authority and its replies: RFC 3161. Loads large libraries: import it when it is needed. */

/** A verified token. */
export interface TimeStamp {
  /** The TimeStampToken as the authority sent it, DER. */
  readonly token: Uint8Array;
  /** The time in the token, Unix milliseconds. */
  readonly timeMs: number;
}

/** What a reply has to match. */
export interface Expected {
  readonly text: string;
  readonly nonce: Uint8Array;
  /** Trusted certificates in PEM; undefined accepts any certificate. */
  readonly authorities: string | undefined;
}

/** Makes a TimeStampReq over a text: SHA-256, with a nonce, asking for the certificates. */
export function makeQuery(text: string, nonce: Uint8Array): Uint8Array<ArrayBuffer> {
  const query = new TimeStampReq({
    version: 1,
    messageImprint: new MessageImprint({
      hashAlgorithm: new AlgorithmIdentifier({ algorithmId: oids.sha256, algorithmParams: new Null() }),
      hashedMessage: new OctetString({ valueHex: Uint8Array.from(sha256Of(utf8(text))).buffer }),
    }),
    nonce: new Integer({ valueHex: positive(nonce).buffer }),
    certReq: true,
  });
  return new Uint8Array(query.toSchema().toBER());
}

/** The bytes of a positive integer in DER: no sign bit, no leading zeros. */
const positive = (nonce: Uint8Array): Uint8Array<ArrayBuffer> => Uint8Array.of(1, ...nonce);

/** Statuses of a reply with a token: granted, and granted with modifications. */
const granted = [0, 1];

/** Reads a TimeStampResp and verifies its token. Throws an Error for the operator. */
export async function readReply(
  reply: Uint8Array<ArrayBuffer>,
  { text, nonce, authorities }: Expected,
): Promise<TimeStamp> {
  const parsed = fromBER(reply);
  if (parsed.offset !== reply.byteLength || !(parsed.result instanceof Sequence))
    throw new Error('its response is not a time-stamp reply');
  const { status, timeStampToken } = new TimeStampResp({ schema: parsed.result });
  if (!granted.includes(status.status)) {
    const words = (status.statusStrings ?? []).map(({ valueBlock }) => valueBlock.value.slice(0, 200));
    throw new Error(`it rejected the query (${[`status ${status.status}`, ...words].join(': ')})`);
  }
  const encoded = parsed.result.valueBlock.value[1]?.valueBeforeDecodeView;
  if (timeStampToken === undefined || encoded === undefined) throw new Error('its reply has no token');
  const token = Uint8Array.from(encoded);
  const trusted = authorities === undefined ? undefined : readAuthorities(authorities);
  const stamped = await verifyToken(token, text, trusted).catch((error: Error) => {
    throw new Error(`its time stamp is not valid: ${error.message}`);
  });
  if (stamped.nonce === undefined || !isSame(stamped.nonce, positive(nonce)))
    throw new Error('its time stamp belongs to another query: the nonce differs');
  return { token, timeMs: stamped.timeMs };
}
