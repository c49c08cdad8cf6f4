import { instant, outcomeWords, type Proven, readAttachments } from '../verifier/index.ts';
import { type LinkedBundle, linkTo } from './link.ts';

/** A text in both languages of a certificate. */
export interface Bilingual {
  readonly zh: string;
  readonly en: string;
}

/** A line of the record: its name and its value. */
export interface Row {
  readonly name: Bilingual;
  readonly value: string;
}

/** What a certificate says. */
export interface CertificateContent {
  readonly title: Bilingual;
  readonly subject: string;
  readonly record: readonly Row[];
  readonly log: readonly Row[];
  readonly sections: readonly { readonly title: Bilingual; readonly lines: readonly Bilingual[] }[];
  /** The text of the QR code. */
  readonly link: string;
  readonly linkCaption: Bilingual;
  /** The bundle, byte for byte. */
  readonly bundle: string;
  /** The time stamp of the bundle, whose authority the drawing names. */
  readonly timeStamp: { readonly text: string; readonly token: Uint8Array } | undefined;
  /** When it was made, Unix milliseconds. */
  readonly atMs: number;
}

/** What a certificate needs beside the bundle. */
export interface CertificateFacts {
  /** Where others reach the public API, without a slash at its end; undefined if that is not known. */
  readonly publicUrl: string | undefined;
  /** ISO 4217 code. */
  readonly currency: string;
  readonly atMs: number;
}

/** The members of a record in the order of the page. */
const members = Object.keys(outcomeWords.en.fields);

/** The name of a member. The page shows the price with its currency. */
function memberName(member: string): Bilingual {
  const { zh, en } = outcomeWords;
  return member === 'price'
    ? { zh: '价格', en: 'Price' }
    : { zh: zh.fields[member] ?? member, en: en.fields[member] ?? member };
}

const notDisclosed = '未披露 not disclosed';

/** The content of the certificate of a bundle, of which `proven` is what it proves. */
export function contentOf(proven: Proven, bundle: string, facts: CertificateFacts): CertificateContent {
  const { record, checkpoint, signers, index, hash, timeStamp } = proven;
  const names = members.filter((name) => record.members.has(name) || record.hidden.includes(name));
  const hasUrl = facts.publicUrl !== undefined;
  const pageUrl = `${facts.publicUrl ?? ''}/verify`;
  const [{ vkey = '' } = {}] = signers;
  const { link, omitted } = linkTo(pageUrl, JSON.parse(bundle) as LinkedBundle, vkey);
  const { size, root } = checkpoint;
  return {
    title: { zh: '艺术品备案证书', en: 'Certificate of filing' },
    subject: record.number,
    record: [
      ...names.map((name) => ({
        name: memberName(name),
        value: record.hidden.includes(name) ? notDisclosed : shown(name, record.members.get(name), facts),
      })),
      { name: { zh: '备案哈希', en: 'Hash' }, value: hash ?? notDisclosed },
    ],
    log: [
      { name: { zh: '存证日志', en: 'Evidence log' }, value: checkpoint.origin },
      { name: { zh: '日志位置', en: 'Position' }, value: `${index} / ${size} (0 … ${size - 1})` },
      { name: { zh: '记入时间', en: 'Logged at' }, value: instant(proven.timeS) },
      { name: { zh: '检查点', en: 'Checkpoint' }, value: `${size}  ${Buffer.from(root).toString('base64')}` },
      {
        name: { zh: '验证公钥', en: 'Verifier key' },
        value: keysText(signers.map((signer) => signer.vkey)),
      },
    ],
    sections: sectionsOf(hasUrl ? pageUrl : undefined),
    link: hasUrl ? link : '',
    linkCaption: link === pageUrl ? fileCaption : captionOf(omitted),
    bundle,
    timeStamp: timeStamp && { text: timeStamp.proof.checkpoint.text, token: timeStamp.token },
    atMs: facts.atMs,
  };
}

/** Verifier keys on the page at most. More may sign after several rotations, and would leave no place for the record. */
const keysMax = 3;

const keysText = (vkeys: readonly string[]): string =>
  [...vkeys.slice(0, keysMax), ...(vkeys.length > keysMax ? [`+ ${vkeys.length - keysMax}`] : [])].join('\n');

/** The value of a member as people read it. */
function shown(name: string, value: unknown, { currency }: CertificateFacts): string {
  if (name === 'price') return priceText(Number(value), currency);
  if (name !== 'attachments') return String(value);
  return readAttachments(String(value))
    .map((attachment) => `${attachment.name}  SHA-256 ${attachment.sha256}`)
    .join('\n');
}

/** A price in minor units with its currency, such as `CNY 128,000.00 (12800000)`. */
function priceText(price: number, currency: string): string {
  const format = new Intl.NumberFormat('en', { style: 'currency', currency, currencyDisplay: 'code' });
  const digits = format.resolvedOptions().maximumFractionDigits ?? 0;
  const text = format.format(`${price}E-${digits}` as Intl.StringNumericLiteral).replace('\u00a0', ' ');
  return `${text} (${price})`;
}

const captionOf = (omitted: readonly string[]): Bilingual => {
  const named = (language: keyof Bilingual, separator: string) =>
    omitted.map((name) => memberName(name)[language]).join(separator);
  if (omitted.length === 0) return { zh: '扫码核验', en: 'Scan to check' };
  return {
    zh: `扫码核验（不含：${named('zh', '、')}，见所附存证包）`,
    en: `Scan to check (without ${named('en', ', ')}: see the attached bundle)`,
  };
};

/** The caption of a code without the bundle, which is too long. */
const fileCaption: Bilingual = {
  zh: '扫码后选择本 PDF 文件',
  en: 'Scan, then choose this PDF file',
};

const sectionsOf = (pageUrl: string | undefined): CertificateContent['sections'] => [
  {
    title: { zh: '证明什么', en: 'What it proves' },
    lines: [
      {
        zh: '上列记录以该编号载于该存证日志的该位置；持有验证公钥者签署了包含它的检查点。',
        en: 'The record above is in the evidence log at this position, under this number. The holder of the verifier key signed the checkpoint that contains it.',
      },
      {
        zh: '日志不能删除、修改或移动该记录而不与其签名相矛盾。',
        en: 'The log cannot remove, change or move the record without contradicting its signature.',
      },
    ],
  },
  {
    title: { zh: '不证明什么', en: 'What it does not prove' },
    lines: [
      {
        zh: '不证明作品由谁创作，也不证明记录内容真实：日志保存所备案的内容，无人核实。',
        en: 'Who made the work, and whether the record is true: the log keeps what was filed, and nobody checked it.',
      },
      {
        zh: '不是司法证据。存证链尚在选型，未确立任何链或司法存证能力。',
        en: 'It is not judicial evidence. The evidence chain is under selection: no chain and no judicial-evidence capability is established.',
      },
      {
        zh: '记入时间出自日志自身的时钟；只有先后次序得到证明。',
        en: 'The time of the log is that of its own clock. Only the order of records is proven.',
      },
    ],
  },
  {
    title: { zh: '如何核验', en: 'How to check it' },
    lines: [
      pageUrl === undefined
        ? {
            zh: '仅凭本页不能证明任何内容。在核验页（verify.html）中选择本 PDF 文件，或运行 artseal verify；再与本页逐项比对。',
            en: 'This page alone proves nothing. Choose this PDF file in the page verify.html, or run artseal verify. Then compare the result with this page.',
          }
        : {
            zh: `仅凭本页不能证明任何内容。扫描二维码，或打开 ${pageUrl} 并选择本 PDF 文件，或运行 artseal verify；再与本页逐项比对。`,
            en: `This page alone proves nothing. Scan the QR code, or open ${pageUrl} and choose this PDF file, or run artseal verify. Then compare the result with this page.`,
          },
      {
        zh: '验证公钥须与另一来源比对，例如合同、信函或第三方网站。',
        en: 'Compare the verifier key with one from another source, such as a contract, a letter or a website of a third party.',
      },
      {
        zh: '存证包附于本文件（evidence.json），应逐字节保存。',
        en: 'The evidence bundle is attached to this file (evidence.json). Keep it byte for byte.',
      },
    ],
  },
];
