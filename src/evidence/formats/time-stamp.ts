import { sha1 } from '@noble/hashes/legacy.js';
import { sha256, sha384, sha512 } from '@noble/hashes/sha2.js';
import { fromBER, Integer, Null, ObjectIdentifier, OctetString, Sequence } from 'asn1js';
import {
  AlgorithmIdentifier,
  type AttributeTypeAndValue,
  Certificate,
  ContentInfo,
  MessageImprint,
  SignedData,
  type SignerInfo,
  TimeStampReq,
  TimeStampResp,
  TSTInfo,
} from 'pkijs';
import { isSame, readBase64, utf8 } from './encoding.ts';
import { malformed, VerificationFailure } from './failure.ts';

/** Time-stamp tokens, and queries for them: RFC 3161. Loads large libraries: import it when it is needed. */

/** A verified token. */
export interface Stamped {
  /** The genTime of the token, Unix milliseconds. */
  readonly timeMs: number;
  /** Unix seconds: genTime plus the accuracy that the token states. The text existed before. */
  readonly beforeS: number;
  readonly nonce: Uint8Array | undefined;
  /** The subject of the certificate that signed the token. */
  readonly authority: string;
  /** Unix seconds: when the first certificate of the chain expires. All of them were valid at the time of the token. */
  readonly endsAtS: number;
}

const oids = {
  signedData: '1.2.840.113549.1.7.2',
  timeStampInfo: '1.2.840.113549.1.9.16.1.4',
  sha256: '2.16.840.1.101.3.4.2.1',
  extendedKeyUsage: '2.5.29.37',
  timeStamping: '1.3.6.1.5.5.7.3.8',
  /** SigningCertificate of RFC 2634: the hash is SHA-1. */
  signingCertificate: '1.2.840.113549.1.9.16.2.12',
  /** SigningCertificateV2 of RFC 5035: the hash is SHA-256 by default. */
  signingCertificateV2: '1.2.840.113549.1.9.16.2.47',
} as const;

/** Certificates of a token at most: building a chain among more could take very long. */
const certificatesMax = 16;

/** The parts of a certificate's subject that are printed. */
const shownNames: Readonly<Record<string, string>> = { '2.5.4.3': 'CN', '2.5.4.10': 'O', '2.5.4.6': 'C' };

/** The hash algorithms with which a signature may name its certificate. */
const hashes: Readonly<Record<string, (data: Uint8Array) => Uint8Array>> = {
  [oids.sha256]: sha256,
  '2.16.840.1.101.3.4.2.2': sha384,
  '2.16.840.1.101.3.4.2.3': sha512,
};

/** Reads trusted certificates in PEM. Throws VerificationFailure MALFORMED if there is none, or one is broken. */
export function readAuthorities(pem: string): readonly Certificate[] {
  const bodies = [...pem.matchAll(/-----BEGIN CERTIFICATE-----([^-]+)-----END CERTIFICATE-----/g)];
  if (bodies.length === 0) throw malformed('the file of trusted authorities has no certificate in PEM');
  return bodies.map(([, body = '']) => {
    const what = 'a certificate of the file of trusted authorities';
    try {
      return Certificate.fromBER(copied(readBase64(body.replace(/\s/g, ''), what)));
    } catch (error) {
      if (error instanceof VerificationFailure) throw error;
      throw malformed(`${what} cannot be read`);
    }
  });
}

/**
 * Verifies a TimeStampToken in DER over a text: imprint, signature, the purpose of the certificate, and that the signature
 * names it. The certificate has to chain to one of `authorities`; undefined accepts any certificate. Throws an Error.
 */
export async function verifyToken(
  token: Uint8Array,
  text: string,
  authorities: readonly Certificate[] | undefined,
): Promise<Stamped> {
  const data = utf8(text);
  const signed = readToken(token);
  const info = readInfo(signed);
  const { hashAlgorithm, hashedMessage } = info.messageImprint;
  const isOverText = isSame(new Uint8Array(hashedMessage.getValue()), sha256(data));
  if (hashAlgorithm.algorithmId !== oids.sha256 || !isOverText)
    throw new Error('it is over something else than this checkpoint');
  if ((signed.certificates ?? []).length > certificatesMax) throw new Error('it has too many certificates');
  const [signer, ...others] = signed.signerInfos;
  if (signer === undefined || others.length > 0) throw new Error('it does not have exactly one signature');
  const { signatureVerified, signerCertificate, certificatePath } = await signed.verify({
    ...{ signer: 0, extendedMode: true, passedWhenNotRevValues: true },
    data: copied(data).buffer,
    checkChain: authorities !== undefined,
    trustedCerts: [...(authorities ?? [])],
  });
  if (signatureVerified !== true || !signerCertificate) throw new Error('its signature is not valid');
  checkPurpose(signerCertificate);
  if (!names(signer, signerCertificate)) throw new Error('its signature does not name its certificate');
  const ends = [signerCertificate, ...(certificatePath ?? [])].map(({ notAfter }) =>
    notAfter.value.getTime(),
  );
  return {
    timeMs: info.genTime.getTime(),
    beforeS: latestS(info),
    nonce: info.nonce && new Uint8Array(info.nonce.valueBlock.valueHexView),
    authority: nameOf(signerCertificate),
    endsAtS: Math.floor(Math.min(...ends) / 1000),
  };
}

function readToken(token: Uint8Array): SignedData {
  const { offset, result } = fromBER(copied(token));
  if (offset !== token.length) throw new Error('it is not a time-stamp token in DER');
  const { contentType, content } = new ContentInfo({ schema: result });
  if (contentType !== oids.signedData) throw new Error('it is not signed data');
  return new SignedData({ schema: content });
}

function readInfo({ encapContentInfo: { eContentType, eContent } }: SignedData): TSTInfo {
  if (eContentType !== oids.timeStampInfo || eContent === undefined)
    throw new Error('its signed content is not a time stamp');
  return TSTInfo.fromBER(eContent.getValue());
}

/** RFC 3161, section 2.3: with further purposes, a signature made for another one could pass for a time stamp. */
function checkPurpose({ extensions = [] }: Certificate): void {
  const usage = extensions.find(({ extnID }) => extnID === oids.extendedKeyUsage);
  const purposes: unknown = usage?.parsedValue?.keyPurposes;
  const isForStamps = Array.isArray(purposes) && purposes.join() === oids.timeStamping;
  if (usage?.critical !== true || !isForStamps)
    throw new Error('its certificate is not for time stamps alone');
}

/** Whether the signed attributes name the certificate by its hash, so that no other can replace it: RFC 3161, 2.4.1. */
function names({ signedAttrs }: SignerInfo, certificate: Certificate): boolean {
  const encoded = new Uint8Array(certificate.toSchema().toBER());
  return (signedAttrs?.attributes ?? []).some(({ type, values }) => {
    const isFirstVersion = type === oids.signingCertificate;
    if (!isFirstVersion && type !== oids.signingCertificateV2) return false;
    // A sequence of certificates. Each is a sequence of an optional hash algorithm and the hash.
    const [first, second] = membersOf(membersOf(membersOf(values[0])[0])[0]);
    const isDefault = first instanceof OctetString;
    const named = hashes[oidOf(membersOf(first)[0])];
    const hashOf = isDefault ? (isFirstVersion ? sha1 : sha256) : named;
    const digest = isDefault ? first : second;
    if (hashOf === undefined || !(digest instanceof OctetString)) return false;
    return isSame(new Uint8Array(digest.getValue()), hashOf(encoded));
  });
}

const membersOf = (block: unknown) => (block instanceof Sequence ? block.valueBlock.value : []);
const oidOf = (block: unknown): string => (block instanceof ObjectIdentifier ? block.getValue() : '');

function latestS({ genTime, accuracy }: TSTInfo): number {
  const { seconds = 0, millis = 0, micros = 0 } = accuracy ?? {};
  return Math.ceil((genTime.getTime() + seconds * 1000 + millis + micros / 1000) / 1000);
}

/** The subject of a certificate in one line. */
function nameOf({ subject }: Certificate): string {
  const shown = ({ type, value }: AttributeTypeAndValue) =>
    shownNames[type] === undefined ? [] : [`${shownNames[type]}=${value.valueBlock.value}`];
  return printable(subject.typesAndValues.flatMap(shown).join(', ')) || 'a certificate without a name';
}

/** Text from others without control characters, which a terminal would obey. */
export const printable = (text: string): string => text.replaceAll(/\p{C}/gu, '?').slice(0, 300);

/** The library needs bytes that own their buffer. */
const copied = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => Uint8Array.from(bytes);

/** What a reply has to match. */
interface Expected {
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
      hashedMessage: new OctetString({ valueHex: Uint8Array.from(sha256(utf8(text))).buffer }),
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

/** Reads a TimeStampResp and verifies its token, which it returns in DER with its time. Throws an Error for the operator. */
export async function readReply(
  reply: Uint8Array<ArrayBuffer>,
  { text, nonce, authorities }: Expected,
): Promise<{ readonly token: Uint8Array; readonly timeMs: number }> {
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
