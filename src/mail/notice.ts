import type { Registration } from '../store/registration-commands.ts';
import type { Mail } from './mailer.ts';

/**
 * The mail that self-service is open. It holds nothing that the person entered: anyone can enter anything with the address of
 * somebody else.
 */
export function noticeTo({ registrationId, email }: Registration, publicUrl: string): Mail {
  return {
    to: email,
    id: registrationId,
    subject: '自助注册现已开放 / Self-service registration is open',
    text: `您好：

此电子邮箱曾预先登记本艺术品登记服务。自助注册与自助签发密钥现已开放：
${publicUrl}

通知按预先登记的先后顺序发出，每个邮箱只会收到这一封。如果您没有登记过，请忽略本邮件。

Hello,

This e-mail address was pre-registered with our registry for artworks. Self-registration and self-service API keys are now open:
${publicUrl}

Notices go out in the order of pre-registration. This is the only mail that this address gets. If you did not register, ignore it.
`,
  };
}
