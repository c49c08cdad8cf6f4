import { useState } from 'preact/hooks';
import { AccessService, type Registration, Registration_Notice } from '../../gen/artseal/v1/access_pb.ts';
import { Key_Tier } from '../../gen/artseal/v1/admin_pb.ts';
import { Actions, type Change } from './action.tsx';
import { count, word } from './format.ts';
import { limitFields, limitsOf } from './platforms.tsx';
import { useSession } from './session.ts';
import { Badge, type Column, Filter, PagedTable, Ref, Secret, Time, Title, useRound } from './ui.tsx';

/** The notices that a list can show, and their labels. */
const filters = [
  ['', 'All'],
  ['DUE', 'Due'],
  ['SENDING', 'Being sent'],
  ['SENT', 'Sent'],
  ['UNKNOWN', 'Unknown: it may have arrived'],
  ['BOUNCED', 'Bounced'],
] as const;

/** The pre-registrations: appointments, approvals and notices. */
export function RegistrationsView() {
  const access = useSession().client(AccessService);
  const { round, again } = useRound();
  const [notice, setNotice] = useState('');
  const [progress, setProgress] = useState('');
  const [addition, notices] = [useAddition(), useNotices(setProgress)];
  const actionsOf = useRegistrationActions();
  const columns: readonly Column<Registration>[] = [
    ['Nr.', ({ position }) => count(position)],
    ['Person', ({ name, email }) => <Person name={name} email={email} />],
    ['Intended use', ({ intendedUse }) => intendedUse],
    ['Tier', ({ tier }) => word(Key_Tier, tier)],
    ['Registered', ({ registeredAt, byForm }) => <Registered at={registeredAt} byForm={byForm} />],
    ['Appointment', ({ appointmentAt }) => <Time at={appointmentAt} />],
    ['Platform', (registration) => <Approval of={registration} />],
    ['Notice', (registration) => <Notice of={registration} />],
    ['Actions', (registration) => <Actions of={actionsOf(registration)} done={again} />],
  ];
  return (
    <>
      <Title actions={<Actions of={[addition, notices]} done={again} />}>Access</Title>
      <p class="quiet" role="status">
        {progress}
      </p>
      <Filter label="Notice" options={filters} value={notice} change={setNotice} />
      <PagedTable
        caption="Registrations"
        again={`${notice} ${round}`}
        columns={columns}
        empty="There is no such registration."
        items="registrations"
        read={(page) =>
          access.listRegistrations({
            ...page,
            notice: Registration_Notice[(notice || 'NOTICE_UNSPECIFIED') as keyof typeof Registration_Notice],
          })
        }
      />
    </>
  );
}

const Person = ({ name, email }: { name: string; email: string }) => (
  <>
    {name}
    <br />
    <span class="quiet">{email}</span>
  </>
);

const Registered = ({ at, byForm }: { at: string; byForm: boolean }) => (
  <>
    <Time at={at} />
    {byForm && <span class="quiet"> by the form</span>}
  </>
);

function Approval({ of: { platform, claimedAt, linkExpiresAt } }: { of: Registration }) {
  if (platform === '') return <span class="quiet">not approved</span>;
  return (
    <>
      <Ref to="platforms" id={platform} />
      <br />
      <span class="quiet">{claimedAt === '' ? 'link until ' : 'key issued '}</span>
      <Time at={claimedAt || linkExpiresAt} />
    </>
  );
}

const Notice = ({ of: { notice, noticeDetail } }: { of: Registration }) => (
  <>
    <Badge>{word(Registration_Notice, notice)}</Badge>
    {notice !== Registration_Notice.SENT && noticeDetail !== '' && (
      <>
        <br />
        <span class="quiet">{noticeDetail}</span>
      </>
    )}
  </>
);

/** Adds a registration. */
function useAddition(): Change {
  const access = useSession().client(AccessService);
  return {
    label: 'Add registration',
    title: 'Pre-register a person',
    text: 'A known address keeps its first place.',
    fields: [
      { name: 'email', label: 'E-mail address', maxLength: 254 },
      { name: 'name', label: 'Name of person or company', maxLength: 128 },
      { name: 'intendedUse', label: 'Intended use', maxLength: 1_000 },
      { name: 'tier', label: 'Wished tier', options: tierOptions },
    ],
    run: ({ email = '', name = '', intendedUse = '', tier = '', reason }, options) => {
      const texts = { email, name, intendedUse, tier: Key_Tier[tier as keyof typeof Key_Tier] };
      return access.preRegister({ ...texts, reason }, options);
    },
  };
}

const tierOptions = [
  ['TRIAL', 'Trial'],
  ['STANDARD', 'Standard'],
  ['ENTERPRISE', 'Enterprise'],
] as const;

/** Sends the notices that are due, and shows how far it is. */
function useNotices(show: (progress: string) => void): Change {
  const access = useSession().client(AccessService);
  return {
    label: 'Send notices',
    title: 'Send the notice that self-service is open?',
    text: 'Each registration that is due gets one mail, in the order of arrival. Keep this page open: if it ends early, send them again, and it continues.',
    isDanger: true,
    run: async ({ reason }, options) => {
      const counts = new Map<string, number>();
      try {
        // A stream has no limit of time.
        for await (const { notice, due } of access.sendNotices({ reason }, { ...options, timeoutMs: 0 })) {
          const state = word(Registration_Notice, notice);
          counts.set(state, (counts.get(state) ?? 0) + 1);
          show(`Sending: ${count(due)} are still due.`);
        }
      } finally {
        show('');
      }
      const ended = [...counts].map(([state, number]) => `${state}: ${count(number)}`);
      return <p>{ended.length === 0 ? 'No notice was due.' : ended.join(', ')}</p>;
    },
  };
}

/** Returns the function that makes the actions of a registration. */
function useRegistrationActions() {
  const access = useSession().client(AccessService);

  const shown = ({ link }: { link: string }) => (
    <>
      <p>
        <strong>Copy the link now.</strong> It is not shown again. It issues the API key once. Send it by a
        secure channel.
      </p>
      <Secret label="Link" text={link} />
    </>
  );

  return (registration: Registration): readonly (Change | false)[] => {
    const { registrationId, email, platform, tier, notice, appointmentAt } = registration;
    const appoint: Change = {
      label: 'Appointment',
      title: `Set the appointment of ${email}`,
      text: 'It sends no mail. Empty removes the appointment.',
      fields: [
        {
          name: 'at',
          label: 'Sandbox opens',
          type: 'datetime-local',
          isOptional: true,
          help: 'In your time zone.',
        },
      ],
      run: ({ at = '', reason }, options) => {
        const set = { registrationId, appointmentAt: at === '' ? '' : new Date(at).toISOString() };
        return access.setAppointment({ ...set, reason }, options);
      },
    };
    const approve: Change = {
      label: 'Approve',
      title: `Approve ${email}`,
      text: 'It registers a platform. A one-time link then issues its API key.',
      fields: [
        { name: 'name', label: 'Name of the platform', maxLength: 128, value: registration.name },
        ...limitFields({ tier }),
      ],
      run: async (values, options) => {
        const { name = '', reason } = values;
        const approval = { registrationId, name, ...limitsOf(values), reason };
        return shown(await access.approveRegistration(approval, options));
      },
    };
    const renew: Change = {
      label: 'New link',
      title: `Make a new link for ${platform}?`,
      text: 'The link before ends. If it was used, revoke its key first.',
      run: async ({ reason }, options) =>
        shown(await access.renewAccessLink({ registrationId, reason }, options)),
    };
    const bounced: Change = {
      label: 'Bounced',
      title: `Mark the notice to ${email} as bounced?`,
      text: 'A notice that is due is not sent then.',
      fields: [{ name: 'detail', label: 'What the returned mail says', isOptional: true, maxLength: 300 }],
      run: ({ detail = '', reason }, options) =>
        access.markBounced({ registrationId, detail, reason }, options),
    };
    const remove: Change = {
      label: 'Remove',
      title: `Remove the registration of ${email}?`,
      text: 'Its texts are deleted. Its platform stays. If a notice was sent, the address never gets a second one.',
      isDanger: true,
      run: ({ reason }, options) => access.removeRegistration({ registrationId, reason }, options),
    };
    const isSending = notice === Registration_Notice.SENDING;
    return [
      platform === '' && {
        ...appoint,
        label: appointmentAt === '' ? 'Set appointment' : 'Change appointment',
      },
      platform === '' ? approve : renew,
      !isSending && notice !== Registration_Notice.BOUNCED && bounced,
      !isSending && remove,
    ];
  };
}
