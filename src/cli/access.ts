import {
  AccessService,
  type ApproveRegistrationResponse,
  type Registration,
  Registration_Notice,
  type RenewAccessLinkResponse,
} from '../../gen/artseal/v1/access_pb.ts';
import { Key_Tier } from '../../gen/artseal/v1/admin_pb.ts';
import { readTimeZone } from '../config/config.ts';
import { oneOf } from '../config/settings.ts';
import { accessLinkLifeS, noticeStates } from '../domain/registration.ts';
import { utcTimestamp } from '../domain/utc.ts';
import {
  type Action,
  type CommandGroup,
  fieldLines,
  readDuration,
  readFlag,
  readInstant,
} from './command.ts';
import { limitsOf, tierChoice, tierOf } from './key.ts';
import { type CallSession, calls, present, wordIn } from './session.ts';

const noticeWords = ['DUE', ...noticeStates] as const;
const days = (seconds: number) => `${seconds / 86_400}d`;

const add: Action = {
  usage: `access add --email EMAIL --name NAME --intended-use TEXT --tier ${tierChoice} [--reason TEXT] [--json]`,
  details: ['Pre-registers an e-mail address. A known address keeps its first place, and nothing changes.'],
  ...calls(async (session) => {
    const { words, client, reason } = session;
    const [email, name] = [words.required('email'), words.required('name')];
    const texts = { email, name, intendedUse: words.required('intended-use'), tier: tierOf(words) };
    const response = await client(AccessService).preRegister({ ...texts, reason });
    const found = { ...shown(present(response.registration)), isNew: response.isNew };
    session.show(found, ...fieldLines(found, 15));
  }),
};

const list: Action = {
  usage: `access list [--notice ${noticeWords.join('|')}] [--json]`,
  details: [
    'Lists registrations in the order of arrival. --notice UNKNOWN lists those for which nobody knows whether the mail server took the',
    'mail: they get no second one.',
  ],
  ...calls(({ words, client, showAll }) => {
    const word = readFlag(words, 'notice', oneOf(noticeWords)) ?? 'NOTICE_UNSPECIFIED';
    const notice = Registration_Notice[word];
    return showAll(
      'registrations',
      (page) => client(AccessService).listRegistrations({ notice, ...page }),
      showLine,
    );
  }),
};

const appoint: Action = {
  usage: 'access appoint REGISTRATION_ID --at DATE|none [--reason TEXT] [--json]',
  details: [
    'Sets the appointment at which you open the sandbox: a date, a time as in 2027-01-01T09:00:00+08:00, or 7d from now. It sends no mail.',
  ],
  ...calls(async (session) => {
    const { words, env, client, reason } = session;
    const atS =
      words.required('at') === 'none' ? undefined : readInstant(words, 'at', 'AFTER', readTimeZone(env));
    const appointmentAt = atS === undefined ? '' : utcTimestamp(atS * 1_000);
    const request = { ...named(session), appointmentAt, reason };
    showLine(present((await client(AccessService).setAppointment(request)).registration), session);
  }),
};

const approve: Action = {
  usage: `access approve REGISTRATION_ID --name NAME --tier ${tierChoice} [--monthly-quota N|unlimited] [--filing-cap N] [--expires-in DURATION] [--reason TEXT] [--json]`,
  details: [
    'Registers the platform NAME, and prints a link whose page shows its API key once. The key is created when the person presses the',
    'button of that page. ENTERPRISE needs --monthly-quota.',
    `--expires-in  how long the link is valid, up to ${days(accessLinkLifeS.max)}; by default ${days(accessLinkLifeS.default)}`,
  ],
  ...calls(async (session) => {
    const { words, client, reason } = session;
    const agreement = { name: words.required('name'), tier: tierOf(words), ...limitsOf(words) };
    const request = { ...named(session), ...agreement, ...lifeOf(session), reason };
    showLink(await client(AccessService).approveRegistration(request), session);
  }),
};

const renew: Action = {
  usage: 'access renew REGISTRATION_ID [--expires-in DURATION] [--reason TEXT] [--json]',
  details: [
    'Prints another link of an approved registration; the one before ends. If that was used and the secret is lost, run key revoke',
    'first: the error names the key.',
  ],
  ...calls(async (session) => {
    const request = { ...named(session), ...lifeOf(session), reason: session.reason };
    showLink(await session.client(AccessService).renewAccessLink(request), session);
  }),
};

const notify: Action = {
  usage: 'access notify [--reason TEXT] [--json]',
  details: [
    'Sends the mail that self-service is open to each registration that is due, in the order of arrival, and shows a line for each.',
    'Run it again after an interruption: it continues, and no address gets a second mail. It needs ARTSEAL_SMTP_URL.',
  ],
  ...calls(async ({ client, reason, show }) => {
    for await (const response of client(AccessService).sendNotices({ reason })) {
      const { registrationId, position, detail, due } = response;
      const notice = wordIn(Registration_Notice, response.notice);
      const sent = { registrationId, position: Number(position), notice, detail: detail || null, due };
      const why = notice === 'SENT' ? '' : `  ${detail}`;
      show(sent, `${registrationId}  ${notice.padEnd(7)}  ${due} due${why}`);
    }
  }),
};

const bounced: Action = {
  usage: 'access bounced REGISTRATION_ID [--detail TEXT] [--reason TEXT] [--json]',
  details: [
    'Marks a notice whose mail came back. One that is DUE is skipped then: for an address at which notify fails again and again.',
  ],
  ...calls(async (session) => {
    const { words, client, reason } = session;
    const request = { ...named(session), detail: words.text('detail') ?? '', reason };
    showLine(present((await client(AccessService).markBounced(request)).registration), session);
  }),
};

const remove: Action = {
  usage: 'access remove REGISTRATION_ID [--reason TEXT] [--json]',
  details: [
    'Removes a registration with all that the person entered. Its platform stays. If a notice was sent, a keyed digest of the address',
    'stays, so that it never gets a second one.',
  ],
  ...calls(async (session) => {
    const { registrationId } = named(session);
    await session.client(AccessService).removeRegistration({ registrationId, reason: session.reason });
    session.show({ registrationId, removed: true }, `${registrationId} is removed`);
  }),
};

/** `artseal access` */
export const access: CommandGroup = {
  summary: 'pre-register people, open the sandbox by appointment, and send notices that self-service is open',
  actions: [add, list, appoint, approve, renew, notify, bounced, remove],
  details: ['REGISTRATION_ID is that of access list. See docs/operate/access-desk.md.'],
};

const named = ({ words }: CallSession) => ({ registrationId: words.required('REGISTRATION_ID') });

/** `--expires-in` as the service takes it. */
function lifeOf({ words }: CallSession): { expiresInSeconds?: number } {
  const expiresInSeconds = readDuration(words, 'expires-in', '366d');
  return expiresInSeconds === undefined ? {} : { expiresInSeconds };
}

function shown(registration: Registration) {
  const { registrationId, position, email, name, intendedUse, byForm, registeredAt } = registration;
  return {
    ...{ registrationId, position: Number(position), email, name, intendedUse },
    ...{ tier: wordIn(Key_Tier, registration.tier), byForm, registeredAt },
    appointmentAt: registration.appointmentAt || null,
    platform: registration.platform || null,
    linkExpiresAt: registration.linkExpiresAt || null,
    claimedAt: registration.claimedAt || null,
    notice: wordIn(Registration_Notice, registration.notice),
    noticeAt: registration.noticeAt || null,
    noticeDetail: registration.noticeDetail || null,
  };
}

function showLine(registration: Registration, { show }: CallSession): void {
  const found = shown(registration);
  const { registrationId, tier, email, name, platform, claimedAt, notice, noticeDetail } = found;
  const columns = [registrationId, notice.padEnd(7), tier.padEnd(10), email, name];
  if (found.appointmentAt !== null) columns.push(`appointment ${found.appointmentAt}`);
  if (platform !== null) columns.push(`platform ${platform}${claimedAt === null ? ' (link not used)' : ''}`);
  if (noticeDetail !== null && notice !== 'SENT') columns.push(noticeDetail);
  show(found, columns.join('  '));
}

function showLink(
  response: ApproveRegistrationResponse | RenewAccessLinkResponse,
  session: CallSession,
): void {
  const { registrationId, platform, linkExpiresAt } = shown(present(response.registration));
  const { link } = response;
  const where = link.startsWith('/') ? ' Put the address of your public API before it.' : '';
  const use = `The link shows the API key of ${platform} once, until ${linkExpiresAt}. Send it by a secure channel.${where}`;
  session.show({ registrationId, platform, link, linkExpiresAt }, link, use);
}
