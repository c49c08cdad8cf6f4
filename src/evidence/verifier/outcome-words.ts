import type { FailureKind } from '../formats/failure.ts';

/** The languages of an outcome. */
export type Language = 'en' | 'zh';

/** The sentences of an outcome in a language. Messages of failures are in English. */
type Words = typeof english;

const english = {
  /** The checks in order, by the failure of each. */
  checks: {
    MALFORMED: 'Form',
    HASH_MISMATCH: 'Record',
    NOT_INCLUDED: 'Inclusion proof',
    BAD_SIGNATURE: 'Signature of the log',
    FORKED: 'Consistency',
  } as Readonly<Record<FailureKind, string>>,
  /** The sentence for each check that passed. */
  passed: {
    MALFORMED: 'the file is a complete evidence bundle without extra content.',
    HASH_MISMATCH:
      'it has the stated hash and members, and the leaf commits to this record, number and time.',
    NOT_INCLUDED: 'the hashes lead from the leaf to the root hash of the log.',
    BAD_SIGNATURE: 'your key signed the checkpoint with that root hash.',
    FORKED: 'the checkpoint that you kept is of the same log.',
  } as Readonly<Record<FailureKind, string>>,
  earlierFailed: 'an earlier check failed.',
  otherSize: (pin: number, size: number) =>
    `the pin is of ${pin} leaves, this checkpoint of ${size}: only the log itself can prove that one continues the other.`,
  noPin: 'you gave no earlier checkpoint.',
  nothingChecked: (why: string) => `Nothing was checked: ${why}.`,
  failed: (what: string) => `${what}.`,
  notProvenVerdict: (what: string) => `Not proven: ${what}.`,
  keepFiles: ' Keep all of these files: they are proof against the log.',
  verdict: (name: string, origin: string) => `Proven: ${name} is in the log ${origin}.`,
  filing: (number: string) => `the filing ${number}`,
  later: (sequence: number, kind: string, number: string) => `record ${sequence} (${kind}) of ${number}`,
  isLeaf: (index: number, size: number, origin: string, number: string) =>
    `Exactly the record below is leaf ${index} (counted from 0) of the ${size} leaves of the log ${origin}, under the number ${number}.`,
  addedAt: (time: string) =>
    `The log added it at ${time}, by its own clock. It cannot remove, change or move it without contradicting its signature.`,
  signedBy: (keys: string) => `Signed by the holder of this key: ${keys}.`,
  isOfPin: 'It is the same log as that of the checkpoint that you kept.',
  cosigned: (witness: string, time: string) =>
    `The witness ${witness} cosigned the log up to this checkpoint at ${time}, and saw no contradiction.`,
  doubt: (doubt: string) => `Note: ${doubt}.`,
  hides: (names: string) => `The members that the file hides: ${names}. It proves that they cannot change.`,
  notProven: [
    'Who made the work, and whether the record is true: the log keeps what was filed, and nobody checked it.',
    'That the time is right: it is the clock of the log. Only the order of the leaves is proven.',
    'That everybody sees the same log. Keep the checkpoint and have the log audited: two different logs are proof against it.',
  ],
  silent: (witness: string) =>
    `That the witness ${witness} saw the log up to this checkpoint: it did not cosign.`,
  alwaysOpen: [
    'Whose key it is. That depends on where you got it.',
    'Anything in court: this is neither a chain nor judicial evidence.',
  ],
  timeStamp: 'The time stamp in the bundle: this page does not check it. Use artseal verify.',
  notDisclosed: 'not disclosed',
  fields: {
    filingNo: 'Filing number',
    timestamp: 'Filed at',
    caller: 'Filed by',
    author: 'Author',
    era: 'Era',
    size: 'Size',
    material: 'Material',
    condition: 'Condition',
    price: 'Price in minor units',
    attachments: 'Attachments',
    event: 'Event',
    at: 'Date',
    sequence: 'Record',
  } as Readonly<Record<string, string>>,
};

const chinese: Words = {
  checks: {
    MALFORMED: '格式',
    HASH_MISMATCH: '记录',
    NOT_INCLUDED: '包含证明',
    BAD_SIGNATURE: '日志签名',
    FORKED: '一致性',
  },
  passed: {
    MALFORMED: '文件是完整的存证包，没有多余内容。',
    HASH_MISMATCH: '哈希和所披露的各项相符，日志条目所承诺的正是该记录、编号和时间。',
    NOT_INCLUDED: '各哈希由该条目通向日志的根哈希。',
    BAD_SIGNATURE: '您的公钥签署了含该根哈希的检查点。',
    FORKED: '您保存的检查点属于同一日志。',
  },
  earlierFailed: '前面的检查未通过。',
  otherSize: (pin, size) =>
    `您保存的检查点有 ${pin} 条，此检查点有 ${size} 条：只有日志本身能证明二者前后相承。`,
  noPin: '您未提供更早的检查点。',
  nothingChecked: (why) => `未作检查：${why}。`,
  failed: (what) => `未通过：${what}。`,
  notProvenVerdict: (what) => `未获证明：${what}。`,
  keepFiles: '请保存所有这些文件：它们是日志自相矛盾的证据。',
  verdict: (name, origin) => `已证明：${name}在日志 ${origin} 中。`,
  filing: (number) => `备案 ${number} `,
  later: (sequence, kind, number) => `${number} 的第 ${sequence} 条记录（${kind}）`,
  isLeaf: (index, size, origin, number) =>
    `下列记录正是日志 ${origin} 共 ${size} 条中的第 ${index} 条（从 0 起），编号为 ${number}。`,
  addedAt: (time) => `按日志自身的时钟，记入时间为 ${time}。日志不能删除、修改或移动它而不与其签名相矛盾。`,
  signedBy: (keys) => `由持有此公钥者签署：${keys}。`,
  isOfPin: '它与您保存的检查点属于同一日志。',
  cosigned: (witness, time) => `见证方 ${witness} 于 ${time} 共同签署了截至此检查点的日志，未见矛盾。`,
  doubt: (doubt) => `注意：${doubt}。`,
  hides: (names) => `文件未披露的各项：${names}。它证明这些项不会改变。`,
  notProven: [
    '作品由谁创作，以及记录内容是否真实：日志保存所备案的内容，无人核实。',
    '时间是否准确：它出自日志自身的时钟；只有先后次序得到证明。',
    '人人看到同一日志。请保存检查点并请人审计日志：两份不同的日志即为其自相矛盾的证据。',
  ],
  silent: (witness) => `见证方 ${witness} 见过截至此检查点的日志：它没有共同签署。`,
  alwaysOpen: ['公钥属于谁：这取决于您从何处取得它。', '任何司法上的效力：它既不是链，也不是司法证据。'],
  timeStamp: '存证包中的时间戳：本页不作检查，请用 artseal verify。',
  notDisclosed: '未披露',
  fields: {
    filingNo: '备案编号',
    timestamp: '备案时间',
    caller: '备案方',
    author: '作者',
    era: '年代',
    size: '尺寸',
    material: '材质技法',
    condition: '品相',
    price: '价格（最小货币单位）',
    attachments: '附件摘要',
    event: '事项',
    at: '日期',
    sequence: '记录序号',
  },
};

/** The sentences by language. */
export const outcomeWords: Readonly<Record<Language, Words>> = { en: english, zh: chinese };
