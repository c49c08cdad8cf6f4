import type { Violation } from '../../domain/violation.ts';
import { codeBlock, escaped, type Page } from './docs/layout.ts';

/** What a person entered in the form. */
export interface FormTexts {
  readonly email: string;
  readonly name: string;
  readonly intendedUse: string;
  readonly tier: string;
}

/** The bounds of the fields, in characters, and the tiers. */
export interface FormLimits {
  readonly email: number;
  readonly name: number;
  readonly intendedUse: number;
  readonly tiers: readonly string[];
}

/** A text in both languages. */
const both = (zh: string, en: string): string => `<span lang="zh">${zh}</span> <span lang="en">${en}</span>`;

const paragraphs = (zh: string, en: string): string => `<p lang="zh">${zh}</p>\n<p lang="en">${en}</p>`;

const labels: Readonly<Record<keyof FormTexts, readonly [zh: string, en: string]>> = {
  email: ['电子邮箱', 'E-mail address'],
  name: ['姓名或单位名称', 'Name of person or company'],
  intendedUse: ['用途', 'Intended use'],
  tier: ['希望的级别', 'Wished tier'],
};

const nothing: FormTexts = { email: '', name: '', intendedUse: '', tier: '' };

/** The form, with what was entered, and what is wrong with it: the rules that it breaks, or how many seconds to wait. */
export function formPage(
  limits: FormLimits,
  texts: FormTexts = nothing,
  violations: readonly Violation[] = [],
  retryAfterS = 0,
): Page {
  const wrong = violations.map(({ field, rule }) => {
    const [zh, en] = labels[field as keyof FormTexts];
    return `<li>${both(`${zh}：${ruleInChinese(field, limits)}`, `${en} ${escaped(rule)}.`)}</li>`;
  });
  const minutes = Math.ceil(retryAfterS / 60);
  const problem = [
    wrong.length > 0 ? `<ul class="problem" role="alert">\n${wrong.join('\n')}\n</ul>` : '',
    retryAfterS > 0
      ? `<div class="problem" role="alert">${paragraphs(
          `提交过于频繁。请在 ${minutes} 分钟后重试。`,
          `The form was sent too often. Try again in ${minutes} ${minutes === 1 ? 'minute' : 'minutes'}.`,
        )}</div>`
      : '',
  ];
  const isWrong = (field: string) => violations.some((violation) => violation.field === field);
  const field = (name: keyof FormTexts, control: string) =>
    `<p><label for="${name}">${both(...labels[name])}</label>\n${control}</p>`;
  const common = (name: keyof FormTexts) =>
    `id="${name}" name="${name}" required${isWrong(name) ? ' aria-invalid="true"' : ''}`;
  const options = limits.tiers.map(
    (tier) => `<option${tier === texts.tier ? ' selected' : ''}>${escaped(tier)}</option>`,
  );
  return page(
    '/register',
    '预先登记 / Pre-register',
    `${paragraphs(
      '自助注册尚未开放，沙箱环境须预约开通。请在此预先登记：开放后，我们将按登记先后以电子邮件通知您。登记不会创建账户。',
      'Self-registration is not open yet, and the sandbox is opened by appointment. Pre-register here: we send you a mail when it opens, in the order of pre-registration. This makes no account.',
    )}
${problem.filter((part) => part !== '').join('\n')}
<form method="post" action="/register">
${field('email', `<input ${common('email')} type="email" maxlength="${limits.email}" autocomplete="email" value="${escaped(texts.email)}">`)}
${field('name', `<input ${common('name')} maxlength="${limits.name}" autocomplete="name" value="${escaped(texts.name)}">`)}
${field('intendedUse', `<textarea ${common('intendedUse')} rows="4" maxlength="${limits.intendedUse}">${escaped(texts.intendedUse)}</textarea>`)}
${field('tier', `<select ${common('tier')}>${options.join('')}</select>`)}
<p><button>${both('提交', 'Send')}</button></p>
</form>
${paragraphs(
  '我们只为通知您和安排开通而保存这些内容。重复登记保留首次登记的次序。如需删除，请联系运营方。',
  'We keep this only to notify you and to open the service for you. A repeated registration keeps its first place. To have it removed, write to the operator.',
)}`,
  );
}

function ruleInChinese(field: string, limits: FormLimits): string {
  if (field === 'email') return `须为 name@example.com 形式的邮箱，最多 ${limits.email} 个字符。`;
  if (field === 'tier') return `须为 ${limits.tiers.join('、')} 之一。`;
  return `须有 1 至 ${limits[field as 'name' | 'intendedUse']} 个字符，不含控制字符。`;
}

/** The page after the form was sent. It says the same for an address that is known. */
export const formTakenPage = (): Page =>
  page(
    '/register',
    '已登记 / Registered',
    paragraphs(
      '谢谢。开放后，我们将按登记先后以电子邮件通知您。如果该邮箱已登记过，仍保留首次登记的次序。',
      'Thank you. We send you a mail when self-service opens, in the order of pre-registration. An address that was registered before keeps its first place.',
    ),
  );

/** The page of a form that takes no more. */
export const formClosedPage = (): Page =>
  page(
    '/register',
    '暂停登记 / No more registrations',
    paragraphs(
      '登记名额已满，您填写的内容未被保存。请写信联系运营方。',
      'The form takes no more registrations, and nothing was stored. Write to the operator.',
    ),
  );

/** The page of a link that was not used. */
export const linkPage = (platform: string): Page =>
  page(
    '/access',
    '领取 API 密钥 / Get your API key',
    `${paragraphs(
      `此链接用于为平台 <strong>${escaped(platform)}</strong> 签发 API 密钥。密钥与密文只显示一次：请先准备好保存的地方，再按下按钮。`,
      `This link issues the API key of the platform <strong>${escaped(platform)}</strong>. Key and secret are shown once: press the button when you are ready to save them.`,
    )}
<form method="post">
<p><button>${both('显示密钥', 'Show the key')}</button></p>
</form>`,
  );

/** The page with the key that a link has issued. */
export const claimedPage = ({
  platform,
  apiKey,
  apiSecret,
}: {
  readonly platform: string;
  readonly apiKey: string;
  readonly apiSecret: string;
}): Page =>
  page(
    '/access',
    'API 密钥 / Your API key',
    `${paragraphs(
      `平台 <strong>${escaped(platform)}</strong> 的密钥。<strong>请立即保存：此页不会再次显示。</strong>`,
      `The key of the platform <strong>${escaped(platform)}</strong>. <strong>Save it now: it is not shown again.</strong>`,
    )}
<h2>API key</h2>
${codeBlock(apiKey)}
<h2>API secret</h2>
${codeBlock(apiSecret)}
<p><span lang="zh">用法见</span> <a href="/docs/">/docs/</a>.</p>`,
  );

/** The page of a link that is not valid, or was used. */
export const noLinkPage = (): Page =>
  page(
    '/access',
    '链接无效 / The link is not valid',
    paragraphs(
      '此链接已过期、已使用或不完整。请向发送者索取新的链接。',
      'This link has expired, was used, or is incomplete. Ask the person who sent it for a new one.',
    ),
  );

/** A page with a form that may be sent to this server. */
const page = (path: string, title: string, main: string): Page => ({
  ...{ path, title, hasForm: true },
  main: `<h1>${escaped(title)}</h1>\n${main}`,
});
