/** The languages of the page. */
export type Language = 'en' | 'zh';

const english = {
  noBundle: 'No bundle chosen.',
  chosen: (name: string, bytes: number) => `Chosen: ${name}, ${bytes} bytes.`,
  code: 'QR code',
  brokenCode: 'The QR code cannot be read. Choose the certificate (PDF) or the bundle.',
  tooLarge: (name: string, bytes: number, max: number) =>
    `${name} is too large: it has ${bytes} bytes, and the limit is ${max}.`,
  bundleMissing: 'Choose the bundle first.',
  keyMissing: 'The verifier key is missing. Paste it, or choose a file with it.',
  isProven: 'What is proven',
  checks: 'The checks',
  isNotProven: 'What is not proven',
  record: 'The record',
  unproven: 'Content of the file: none of it is proven',
  exactRecord: 'The exact record that was hashed',
  marks: { passed: '\u2713 passed', failed: '\u2717 failed', open: '\u2013 not checked' },
};

const chinese: typeof english = {
  noBundle: '尚未选择存证包。',
  chosen: (name, bytes) => `已选择：${name}，${bytes} 字节。`,
  code: '二维码',
  brokenCode: '无法读取二维码。请选择备案证书（PDF）或存证包。',
  tooLarge: (name, bytes, max) => `${name} 过大：有 ${bytes} 字节，上限为 ${max}。`,
  bundleMissing: '请先选择存证包。',
  keyMissing: '缺少验证公钥。请粘贴公钥，或选择含有它的文件。',
  isProven: '已证明',
  checks: '检查项',
  isNotProven: '未证明',
  record: '记录',
  unproven: '文件内容：均未获证明',
  exactRecord: '被哈希的确切记录',
  marks: { passed: '\u2713 通过', failed: '\u2717 未通过', open: '\u2013 未检查' },
};

/** The sentences of the page by language. */
export const pageWords: Readonly<Record<Language, typeof english>> = { en: english, zh: chinese };
