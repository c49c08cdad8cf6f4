import { noticeStates } from '../../src/domain/registration.ts';
import type { Makers, World } from './random-world.ts';

/** Addresses, which are few so that commands meet the same ones again. */
const addresses = 12;

/** The hashes of the links of a world. */
const links = new WeakMap<World, Buffer[]>();

const newLink = (world: World) => {
  const sha256 = world.bytes(32);
  links.set(world, [...(links.get(world) ?? []), sha256]);
  return { sha256, expiresAtS: world.nowS + world.random.pick([5, 700_000]) };
};

const knownLink = (world: World): Buffer => world.known(links.get(world) ?? []) ?? Buffer.alloc(32);

const registrationId = (world: World): string => `rg_${world.random.below(addresses)}`;
const attempt = (world: World): string => `attempt ${world.random.below(3)}`;

/** The registration of an address. There is one at a time, so its id is free. */
function registration(world: World) {
  const { random } = world;
  const nth = random.below(addresses);
  return {
    ...{
      registrationId: `rg_${nth}`,
      emailDigest: Buffer.alloc(32, nth),
      email: `person-${nth}@example.com`,
    },
    ...{
      name: random.pick(['Qi', '齐']),
      intendedUse: `use ${random.below(9)}`,
      tier: random.pick(['TRIAL', 'STANDARD'] as const),
    },
  };
}

/** Commands of the access desk. */
export const registrationMakers: Makers = {
  AddRegistration: (world) => ({ by: world.by(), registration: registration(world) }),
  TakeForm: (world) => ({ atS: world.nowS, max: 5, registration: registration(world) }),
  ListRegistrations: (world) => ({
    ...{
      notice: world.random.pick([undefined, undefined, 'DUE', ...noticeStates] as const),
      page: world.page(),
    },
  }),
  SetAppointment: (world) => ({
    ...{ by: world.by(), registrationId: registrationId(world) },
    appointmentAtS: world.random.pick([null, world.nowS]),
  }),
  ApproveRegistration: (world) => {
    const platform = { name: `house ${world.random.below(30)}`, tier: 'TRIAL', monthlyQuota: 20 } as const;
    return { by: world.by(), registrationId: registrationId(world), platform, link: newLink(world) };
  },
  RenewAccessLink: (world) => ({
    by: world.by(),
    registrationId: registrationId(world),
    link: newLink(world),
  }),
  FindAccessLink: (world) => ({ sha256: knownLink(world), nowS: world.nowS }),
  ClaimAccess: (world) => ({ sha256: knownLink(world), key: world.newKey() }),
  ClaimNotice: (world) => ({
    ...{ by: world.oneIn(2) ? world.by() : undefined, attempt: attempt(world), nowS: world.nowS },
    deadBeforeS: world.nowS - world.random.pick([0, 100]),
  }),
  RecordNotice: (world) => ({
    ...{ registrationId: registrationId(world), attempt: attempt(world), detail: '250 OK', nowS: world.nowS },
    result: world.random.pick(['SENT', 'BOUNCED', 'UNKNOWN', 'NOT_SENT', 'NOT_SENT'] as const),
  }),
  MarkBounced: (world) => ({ by: world.by(), registrationId: registrationId(world), detail: '' }),
  RemoveRegistration: (world) => ({ by: world.by(), registrationId: registrationId(world) }),
};
