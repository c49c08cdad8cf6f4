import { sha1 } from '@noble/hashes/legacy.js';
import { sha256, sha384, sha512 } from '@noble/hashes/sha2.js';
import { fromBER, ObjectIdentifier, OctetString, Sequence } from 'asn1js';
import {
  type AttributeTypeAndValue,
  Certificate,
  ContentInfo,
  SignedData,
  type SignerInfo,
  TSTInfo,
} from 'pkijs';
import type { TimeStamp } from './bundle.ts';
import { isSame, readBase64, utf8 } from './encoding.ts';
import { malformed, VerificationFailure } from './failure.ts';

/** That a checkpoint was there before a time, said by an authority for time stamps. */
export interface Stamped {
  /** Unix seconds: the time of the token, with the inaccuracy that it admits added. */
  readonly beforeS: number;
  /** Who says so: the name in the certificate that signed the token. */
  readonly authority: string;
  /** When the first of the certificates ends that it relies on, Unix seconds. All of them were valid at the time of the token. */
  readonly endsAtS: number;
}

/** The object identifiers that are looked for. */
const oids = {
  signedData: '1.2.840.113549.1.7.2',
  timeStampInfo: '1.2.840.113549.1.9.16.1.4',
  sha256: '2.16.840.1.101.3.4.2.1',
  extendedKeyUsage: '2.5.29.37',
  timeStamping: '1.3.6.1.5.5.7.3.8',
  /** Of RFC 2634: the hash is SHA-1. */
  signingCertificate: '1.2.840.113549.1.9.16.2.12',
  /** Of RFC 5035: the hash is SHA-256 unless it says another. */
  signingCertificateV2: '1.2.840.113549.1.9.16.2.47',
} as const;

/** The most certificates that a token may bear: among more, looking for a path to an authority could take for ever. */
const certificatesMax = 16;

/** The names of a certificate's owner that people know, by what they are. */
const shownNames: Readonly<Record<string, string>> = { '2.5.4.3': 'CN', '2.5.4.10': 'O', '2.5.4.6': 'C' };

/** Hashes by their object identifiers, for how a signature names its certificate. */
const hashes: Readonly<Record<string, (data: Uint8Array) => Uint8Array>> = {
  [oids.sha256]: sha256,
  '2.16.840.1.101.3.4.2.2': sha384,
  '2.16.840.1.101.3.4.2.3': sha512,
};

/** Reads the certificates that are trusted, in PEM. Throws VerificationFailure MALFORMED if there is none, or one is broken. */
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
 * Verifies the time stamp of a bundle (RFC 3161): that its token is over the text of the checkpoint, and signed by a
 * certificate for time stamps alone that one of the authorities vouches for at that time. That the leaf is in the checkpoint
 * and the log signed it is for others to see. Throws VerificationFailure BAD_SIGNATURE.
 */
export async function verifyTimeStamp(
  { proof, token }: TimeStamp,
  authorities: readonly Certificate[],
): Promise<Stamped> {
  try {
    return await verifiedToken(token, utf8(proof.checkpoint.note.text), authorities);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new VerificationFailure('BAD_SIGNATURE', `the time stamp is not valid: ${printable(why)}`);
  }
}

async function verifiedToken(
  token: Uint8Array,
  text: Uint8Array,
  authorities: readonly Certificate[],
): Promise<Stamped> {
  const signed = readToken(token);
  const info = readInfo(signed);
  const { hashAlgorithm, hashedMessage } = info.messageImprint;
  const isOverText = isSame(new Uint8Array(hashedMessage.getValue()), sha256(text));
  if (hashAlgorithm.algorithmId !== oids.sha256 || !isOverText)
    throw new Error('it is over something else than this checkpoint');
  if ((signed.certificates ?? []).length > certificatesMax) throw new Error('it bears too many certificates');
  const [signer, ...others] = signed.signerInfos;
  if (signer === undefined || others.length > 0) throw new Error('it is not signed by exactly one');
  const { signatureVerified, signerCertificate, certificatePath } = await signed.verify({
    ...{ signer: 0, extendedMode: true, checkChain: true, passedWhenNotRevValues: true },
    data: copied(text).buffer,
    trustedCerts: [...authorities],
  });
  if (signatureVerified !== true || !signerCertificate) throw new Error('its signature does not verify');
  checkPurpose(signerCertificate);
  if (!names(signer, signerCertificate))
    throw new Error('its signature does not say by which certificate it is');
  const ends = [signerCertificate, ...(certificatePath ?? [])].map(({ notAfter }) =>
    notAfter.value.getTime(),
  );
  return {
    beforeS: latestS(info),
    authority: nameOf(signerCertificate),
    endsAtS: Math.floor(Math.min(...ends) / 1000),
  };
}

function readToken(token: Uint8Array): SignedData {
  const { offset, result } = fromBER(copied(token));
  if (offset !== token.length) throw new Error('it is not a time stamp token in DER');
  const { contentType, content } = new ContentInfo({ schema: result });
  if (contentType !== oids.signedData) throw new Error('it is not signed data');
  return new SignedData({ schema: content });
}

function readInfo({ encapContentInfo: { eContentType, eContent } }: SignedData): TSTInfo {
  if (eContentType !== oids.timeStampInfo || eContent === undefined)
    throw new Error('what is signed is no time stamp');
  return TSTInfo.fromBER(eContent.getValue());
}

/** Of a certificate with other purposes too, a signature could be passed off that was never meant as a time stamp: RFC 3161, 2.3. */
function checkPurpose({ extensions = [] }: Certificate): void {
  const usage = extensions.find(({ extnID }) => extnID === oids.extendedKeyUsage);
  const purposes: unknown = usage?.parsedValue?.keyPurposes;
  const isForStamps = Array.isArray(purposes) && purposes.join() === oids.timeStamping;
  if (usage?.critical !== true || !isForStamps)
    throw new Error('it is signed by a certificate that is not for time stamps alone');
}

/** Whether the signed attributes name the certificate by its hash, so that no other can be put in its place: RFC 3161, 2.4.1. */
function names({ signedAttrs }: SignerInfo, certificate: Certificate): boolean {
  const encoded = new Uint8Array(certificate.toSchema().toBER());
  return (signedAttrs?.attributes ?? []).some(({ type, values }) => {
    const isFirstVersion = type === oids.signingCertificate;
    if (!isFirstVersion && type !== oids.signingCertificateV2) return false;
    // A sequence of the certificates, each a sequence: which hash, if it is not the usual one, and the hash.
    const members = membersOf(membersOf(membersOf(values[0])[0])[0]);
    const place = members[0] instanceof OctetString ? 0 : 1;
    const told = place === 1 ? hashes[oidOf(membersOf(members[0])[0])] : undefined;
    const hashOf = place === 1 ? told : isFirstVersion ? sha1 : sha256;
    const digest = members[place];
    if (hashOf === undefined || !(digest instanceof OctetString)) return false;
    return isSame(new Uint8Array(digest.getValue()), hashOf(encoded));
  });
}

const membersOf = (block: unknown) => (block instanceof Sequence ? block.valueBlock.value : []);
const oidOf = (block: unknown): string => (block instanceof ObjectIdentifier ? block.getValue() : '');

/** The end of the time in which the text was shown to the authority, Unix seconds. */
function latestS({ genTime, accuracy }: TSTInfo): number {
  const { seconds = 0, millis = 0, micros = 0 } = accuracy ?? {};
  return Math.ceil((genTime.getTime() + seconds * 1000 + millis + micros / 1000) / 1000);
}

/** The names of the owner of a certificate, in one line. */
function nameOf({ subject }: Certificate): string {
  const shown = ({ type, value }: AttributeTypeAndValue) =>
    shownNames[type] === undefined ? [] : [`${shownNames[type]}=${value.valueBlock.value}`];
  return printable(subject.typesAndValues.flatMap(shown).join(', ')) || 'a certificate without a name';
}

/** Text of others without what a terminal would obey. */
const printable = (text: string): string => text.replaceAll(/\p{C}/gu, '?').slice(0, 300);

/** The library wants bytes that have their buffer for themselves. */
const copied = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => Uint8Array.from(bytes);
