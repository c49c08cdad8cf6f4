import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  AccessService,
  Registration_Notice,
  type RegistrationSchema,
} from '../../../gen/artseal/v1/access_pb.ts';
import { Key_Tier } from '../../../gen/artseal/v1/admin_pb.ts';
import type { Reasoned } from '../../domain/audit-entry.ts';
import { instantOf } from '../../domain/calendar.ts';
import { agreedQuota, checkAgreement, type Tier, tiers } from '../../domain/caller.ts';
import { unavailable } from '../../domain/reason.ts';
import {
  accessLinkLifeS,
  checkRegistration,
  noticeDetailMax,
  noticeStates,
} from '../../domain/registration.ts';
import { checkText } from '../../domain/text.ts';
import { checkRange } from '../../domain/violation.ts';
import { mintAccessToken, mintRegistrationId, tokenHash } from '../../keys/mint.ts';
import type { AccessLink, Registration } from '../../store/registration-commands.ts';
import { actorOf, type Call, type Implementation, implement } from '../operation.ts';
import { tierOf, toAgreement } from './credential-operations.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { enumWords } from './enum-words.ts';
import { listing } from './paging.ts';

const notices = enumWords(['DUE', ...noticeStates], Registration_Notice);
const tierWords = enumWords(Object.keys(tiers) as Tier[], Key_Tier);

/** AccessService, for operators. */
export function createAccessService(dependencies: ServiceDependencies): Implementation {
  const { clock, nowS, paging, timestampS, digestEmail, accessUrl, sendNotices } = dependencies;
  const byOf = (call: Call, { reason }: Reasoned) => actorOf(call, clock, reason);
  const shown = (registration: Registration) => registrationMessage(registration, timestampS);

  /** Makes a link. `responded` is the response for what was stored, which is another link if the call is a replay. */
  function newLink(expiresInSeconds: number = accessLinkLifeS.default) {
    const token = mintAccessToken();
    const link: AccessLink = { sha256: tokenHash(token), expiresAtS: nowS() + expiresInSeconds };
    const responded = ({ sha256, ...registration }: Registration & Pick<AccessLink, 'sha256'>) => {
      const isThis = sha256.every((byte, place) => byte === link.sha256[place]);
      return { registration: shown(registration), link: isThis ? `${accessUrl}${token}` : '' };
    };
    return { link, responded };
  }

  return implement(AccessService, 'operate', {
    preRegister: {
      check: (request) => [...checkRegistration(request), ...tierWords.checkRequired('tier', request.tier)],
      run: async ({ email, name, intendedUse, tier: number, reason }, call) => {
        const tier = tierOf(number) ?? 'TRIAL';
        const texts = { email, name, intendedUse, tier, emailDigest: digestEmail(email) };
        const registration = { registrationId: mintRegistrationId(), ...texts };
        const by = byOf(call, { reason });
        const added = await call.execute({ kind: 'AddRegistration', by, registration });
        return { registration: shown(added.registration), isNew: added.isNew };
      },
    },
    listRegistrations: listing(paging, {
      check: ({ notice }) => notices.check('notice', notice),
      find: ({ notice }, page, { execute }) =>
        execute({ kind: 'ListRegistrations', notice: notices.of(notice), page }),
      respond: ({ items }) => ({ registrations: items.map(shown) }),
    }),
    setAppointment: {
      check: ({ appointmentAt: at }) =>
        at === '' || instantOf(at) !== undefined ? [] : [{ field: 'appointmentAt', rule: instantRule }],
      run: async ({ registrationId, appointmentAt, reason }, call) => {
        const atMs = instantOf(appointmentAt);
        const appointmentAtS = atMs === undefined ? null : Math.floor(atMs / 1_000);
        const set = { by: byOf(call, { reason }), registrationId, appointmentAtS };
        return { registration: shown(await call.execute({ kind: 'SetAppointment', ...set })) };
      },
    },
    approveRegistration: {
      check: (request) => [...checkAgreement(toAgreement(request)), ...checkLife(request.expiresInSeconds)],
      run: async (request, call) => {
        const { registrationId, expiresInSeconds } = request;
        const { link, responded } = newLink(expiresInSeconds);
        const agreement = toAgreement(request);
        const { name, tier = 'TRIAL', filingCap } = agreement;
        const platform = { name, tier, monthlyQuota: agreedQuota(agreement), filingCap };
        const approval = { by: byOf(call, request), registrationId, platform, link };
        return responded(await call.execute({ kind: 'ApproveRegistration', ...approval }));
      },
    },
    renewAccessLink: {
      check: ({ expiresInSeconds }) => checkLife(expiresInSeconds),
      run: async ({ registrationId, expiresInSeconds, reason }, call) => {
        const { link, responded } = newLink(expiresInSeconds);
        const by = byOf(call, { reason });
        return responded(await call.execute({ kind: 'RenewAccessLink', by, registrationId, link }));
      },
    },
    sendNotices: {
      run: async function* ({ reason }, { principal, signal }) {
        if (sendNotices === undefined)
          throw unavailable(
            'No mail server is set: the server needs ARTSEAL_SMTP_URL and ARTSEAL_MAIL_FROM.',
          );
        const by = actorOf({ principal }, clock, reason);
        for await (const { registration, result, detail, due } of sendNotices(by, signal))
          yield {
            registrationId: registration.registrationId,
            position: BigInt(registration.id),
            ...{ notice: Registration_Notice[result], detail, due },
          };
      },
    },
    markBounced: {
      check: ({ detail }) =>
        detail === '' ? [] : checkText('detail', detail, { min: 1, max: noticeDetailMax }),
      run: async ({ registrationId, detail, reason }, call) => {
        const marked = { by: byOf(call, { reason }), registrationId, detail };
        return { registration: shown(await call.execute({ kind: 'MarkBounced', ...marked })) };
      },
    },
    removeRegistration: {
      run: async ({ registrationId, reason }, call) => {
        const by = byOf(call, { reason });
        await call.execute({ kind: 'RemoveRegistration', by, registrationId });
        return {};
      },
    },
  });
}

const instantRule = 'must be RFC 3339, as in 2027-01-01T09:00:00+08:00, or empty';

const checkLife = (expiresInSeconds: number = accessLinkLifeS.default) =>
  checkRange('expiresInSeconds', expiresInSeconds, accessLinkLifeS);

function registrationMessage(
  registration: Registration,
  timestampS: ServiceDependencies['timestampS'],
): MessageInitShape<typeof RegistrationSchema> {
  const { registrationId, email, name, intendedUse, tier, isByForm, platform, notice } = registration;
  return {
    ...{ registrationId, email, name, intendedUse, tier: Key_Tier[tier], byForm: isByForm },
    position: BigInt(registration.id),
    registeredAt: timestampS(registration.registeredAtS),
    appointmentAt: timestampS(registration.appointmentAtS),
    platform: platform ?? '',
    linkExpiresAt: timestampS(registration.linkExpiresAtS),
    claimedAt: timestampS(registration.claimedAtS),
    notice: Registration_Notice[notice ?? 'DUE'],
    noticeAt: timestampS(registration.noticeAtS),
    noticeDetail: registration.noticeDetail ?? '',
  };
}
