import { hash, X509Certificate } from 'node:crypto';
import type {
  Certificate,
  SignedData,
  SignedDataVerifyParams,
  SignedDataVerifyResult,
  SignerInfo,
  TSTInfo,
} from 'pkijs';

/** A token of a time stamping authority, verified. */
export interface TimeStamp {
  /** The RFC 3161 TimeStampToken as it came, DER. */
  readonly token: Uint8Array;
  /** When the authority says that it was shown the text, Unix milliseconds. */
  readonly atMs: number;
}

/** What a reply is held against. */
export interface Expected {
  readonly text: string;
  readonly nonce: Uint8Array;
  /** Certificates in PEM of which one has to vouch for the authority; undefined to take any. */
  readonly authorities: string | undefined;
}

/** Bytes of a nonce. */
export const nonceBytes = 16;

/** The most certificates of a token: a path is looked for among them, and an authority sends three or four. */
const certificatesMax = 16;

const oids = {
  sha256: '2.16.840.1.101.3.4.2.1',
  tstInfo: '1.2.840.113549.1.9.16.1.4',
  extendedKeyUsage: '2.5.29.37',
  timeStamping: '1.3.6.1.5.5.7.3.8',
} as const;

/** The attributes by which a signer names its own certificate, by its hash: which hash that is if it does not say. */
const certificateHashes: Readonly<Record<string, string>> = {
  // SigningCertificate of RFC 2634, and SigningCertificateV2 of RFC 5035.
  '1.2.840.113549.1.9.16.2.12': 'sha1',
  '1.2.840.113549.1.9.16.2.47': 'sha256',
};
const algorithms: Readonly<Record<string, string>> = {
  '2.16.840.1.101.3.4.2.1': 'sha256',
  '2.16.840.1.101.3.4.2.2': 'sha384',
  '2.16.840.1.101.3.4.2.3': 'sha512',
};

/** The statuses of a reply that has a token: granted, and granted with modifications. */
const granted = [0, 1];

/** Reads the certificates of a PEM file. Throws an Error if there is none, or one cannot be read. */
export function parseAuthorities(pem: string): string {
  const found = certificatesIn(pem);
  if (found.length === 0) throw new Error('has no certificate in PEM');
  for (const one of found) new X509Certificate(one);
  return pem;
}

function certificatesIn(pem: string): readonly string[] {
  return pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
}

/** Makes a TimeStampReq over a text: SHA-256, a nonce, and the wish for the certificates of the authority. */
export async function makeQuery(text: string, nonce: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  const [{ AlgorithmIdentifier, MessageImprint, TimeStampReq }, { Integer, Null, OctetString }] =
    await libraries();
  const query = new TimeStampReq({
    version: 1,
    messageImprint: new MessageImprint({
      hashAlgorithm: new AlgorithmIdentifier({ algorithmId: oids.sha256, algorithmParams: new Null() }),
      hashedMessage: new OctetString({ valueHex: imprintOf(text) }),
    }),
    nonce: new Integer({ valueHex: positive(nonce).buffer }),
    certReq: true,
  });
  return new Uint8Array(query.toSchema().toBER());
}

/** The bytes as DER has a positive integer: without a sign, and in no more bytes than it takes. */
function positive(nonce: Uint8Array): Uint8Array<ArrayBuffer> {
  return Uint8Array.of(1, ...nonce);
}

/** The libraries are only loaded where time stamps are asked for. */
const libraries = () => Promise.all([import('pkijs'), import('asn1js')]);

function imprintOf(text: string): ArrayBuffer {
  return Uint8Array.from(hash('sha256', text, 'buffer')).buffer;
}

/** Reads a TimeStampResp. Throws an Error that says why its token is none over this text, or is none to keep. */
export async function readReply(reply: Uint8Array<ArrayBuffer>, expected: Expected): Promise<TimeStamp> {
  const [{ TimeStampResp }, { fromBER, Sequence }] = await libraries();
  const parsed = fromBER(reply);
  if (parsed.offset !== reply.byteLength || !(parsed.result instanceof Sequence))
    throw new Error('it answered what is no time stamp reply');
  const { status, timeStampToken } = new TimeStampResp({ schema: parsed.result });
  if (!granted.includes(status.status)) throw new Error(`it rejected the query (${wordsOf(status)})`);
  const encoded = parsed.result.valueBlock.value[1]?.valueBeforeDecodeView;
  if (timeStampToken === undefined || encoded === undefined) throw new Error('it answered without a token');
  return { token: Uint8Array.from(encoded), atMs: await verifiedTime(timeStampToken.content, expected) };
}

function wordsOf(status: { status: number; statusStrings?: { valueBlock: { value: string } }[] }): string {
  const words = (status.statusStrings ?? []).map(({ valueBlock }) => valueBlock.value.slice(0, 200));
  return [`status ${status.status}`, ...words].join(': ');
}

/** When the authority says that it was shown the text. Throws if the token is not good. */
async function verifiedTime(content: unknown, { text, nonce, authorities }: Expected): Promise<number> {
  const [pki] = await libraries();
  const signed = new pki.SignedData({ schema: content });
  const { eContentType, eContent } = signed.encapContentInfo;
  if (eContentType !== oids.tstInfo || eContent === undefined) throw new Error('its token is no time stamp');
  const told = pki.TSTInfo.fromBER(eContent.getValue());
  refuseOtherInfo(told, text, nonce);
  if ((signed.certificates ?? []).length > certificatesMax)
    throw new Error('its token has too many certificates');
  const [signer, ...more] = signed.signerInfos;
  if (signer === undefined || more.length > 0) throw new Error('its token has not exactly one signature');
  const trustedCerts = certificatesIn(authorities ?? '').map((pem) =>
    pki.Certificate.fromBER(Uint8Array.from(new X509Certificate(pem).raw)),
  );
  const certificate = await signerOf(signed, {
    data: Uint8Array.from(Buffer.from(text)).buffer,
    checkChain: authorities !== undefined,
    trustedCerts,
  });
  if (!isForTimeStamps(certificate)) throw new Error('its certificate is not for time stamps alone');
  if (!(await isNamedBy(signer, certificate))) throw new Error('its signature does not name its certificate');
  return told.genTime.getTime();
}

function refuseOtherInfo(
  { messageImprint, nonce: toldNonce }: TSTInfo,
  text: string,
  nonce: Uint8Array,
): void {
  const { hashAlgorithm, hashedMessage } = messageImprint;
  const isSame = Buffer.from(hashedMessage.getValue()).equals(Buffer.from(imprintOf(text)));
  if (hashAlgorithm.algorithmId !== oids.sha256 || !isSame)
    throw new Error('its time stamp is over something else');
  const told = toldNonce && Buffer.from(toldNonce.valueBlock.valueHexView);
  if (told?.equals(positive(nonce)) !== true)
    throw new Error('its time stamp answers another query: the nonce differs');
}

/** The certificate that the signature is by. Throws if the signature, or the chain where that is checked, is not good. */
async function signerOf(
  signed: SignedData,
  terms: Omit<SignedDataVerifyParams, 'extendedMode'>,
): Promise<Certificate> {
  const verified: SignedDataVerifyResult = await signed
    .verify({ ...terms, signer: 0, extendedMode: true, passedWhenNotRevValues: true })
    .catch((error: Error) => {
      throw new Error(`its time stamp is not good: ${error.message}`);
    });
  if (verified.signatureVerified !== true || !verified.signerCertificate)
    throw new Error('its signature is not good');
  return verified.signerCertificate;
}

/** Whether a certificate has the critical extension that allows it to sign time stamps, and nothing else. */
function isForTimeStamps({ extensions = [] }: Certificate): boolean {
  const usage = extensions.find(({ extnID }) => extnID === oids.extendedKeyUsage);
  const purposes: unknown = usage?.parsedValue?.keyPurposes;
  return usage?.critical === true && Array.isArray(purposes) && purposes.join() === oids.timeStamping;
}

/**
 * Whether a signature names its certificate by a hash, so that no other can take its place: RFC 3161, section 2.4.2. The
 * attribute is a list of lists, of which the first names that of the signer: a hash, and before it which hash it is.
 */
async function isNamedBy({ signedAttrs }: SignerInfo, certificate: Certificate): Promise<boolean> {
  const [, { ObjectIdentifier, OctetString, Sequence }] = await libraries();
  const membersOf = (block: unknown) => (block instanceof Sequence ? block.valueBlock.value : []);
  const encoded = new Uint8Array(certificate.toSchema().toBER());
  return (signedAttrs?.attributes ?? []).some(({ type, values }) => {
    const [first, second] = membersOf(membersOf(membersOf(values[0])[0])[0]);
    const [named] = membersOf(first);
    const told = named instanceof ObjectIdentifier ? algorithms[named.getValue()] : undefined;
    const [algorithm, digest] =
      first instanceof OctetString ? [certificateHashes[type], first] : [told, second];
    if (certificateHashes[type] === undefined || algorithm === undefined) return false;
    return (
      digest instanceof OctetString &&
      hash(algorithm, encoded, 'buffer').equals(new Uint8Array(digest.getValue()))
    );
  });
}
