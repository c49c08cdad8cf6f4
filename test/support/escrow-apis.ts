import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { toJson } from '@bufbuild/protobuf';
import { ConnectError } from '@connectrpc/connect';
import { type Escrow, Escrow_State, Escrow_Type, EscrowSchema } from '../../gen/artseal/v1/escrow_pb.ts';
import { ErrorInfoSchema } from '../../gen/google/rpc/error_details_pb.ts';
import type { ApiCredentials } from '../../src/client/sign.ts';
import { createTypedTransport } from '../../src/client/typed.ts';
import type { EscrowState } from '../../src/domain/escrow.ts';
import type { Reason } from '../../src/domain/reason.ts';
import { askProvenance, fileArtwork, getEscrow, openEscrow, refundEscrow, releaseEscrow } from './calls.ts';
import { escrowTerms } from './samples.ts';
import { type ServiceOptions, startService, type TestService } from './service.ts';
import type { RestAnswer } from './signed-request.ts';
import { typedClients } from './typed-clients.ts';

/** Who pays and who is paid, where a test chooses. */
export interface Parties {
  readonly buyerId?: string;
  readonly sellerId?: string;
}

/** What a call about an order came to, at either door. */
export interface Outcome {
  /** Why it was refused, if it was. */
  readonly code: Reason | undefined;
  readonly message: string;
  readonly retryAfter: string | undefined;
  readonly escrowId: string;
  readonly state: EscrowState | undefined;
  /** What is under way for it, if anything is. */
  readonly pending: string | undefined;
  /** The states that it has been in; empty where the answer does not tell them. */
  readonly history: readonly string[];
}

/** The operations on orders, through one door. */
export interface EscrowDoor {
  open(filingNo: string, parties?: Parties): Promise<Outcome>;
  get(escrowId: string): Promise<Outcome>;
  release(escrowId: string): Promise<Outcome>;
  refund(escrowId: string): Promise<Outcome>;
}

/** The names of the doors. */
export const doorNames = ['REST', 'typed RPC'] as const;

/** Both doors of a service, and a platform that files and sells. */
export interface EscrowDoors {
  readonly service: TestService;
  readonly platform: ApiCredentials & { readonly caller: string };
  readonly doors: Readonly<Record<(typeof doorNames)[number], EscrowDoor>>;
  /** The number of a new filing of the platform. */
  file(): Promise<string>;
  /** The days on which an artwork was transferred. */
  transfersOf(filingNo: string): Promise<number>;
}

const escrowIdPattern = /ES-\d{4}-[0-9A-Z]{4}/;

const refused = (code: Reason, message: string, retryAfter: string | undefined): Outcome => ({
  ...{ code, message, retryAfter, state: undefined, pending: undefined, history: [] },
  escrowId: escrowIdPattern.exec(message)?.[0] ?? '',
});

// biome-ignore lint/suspicious/noExplicitAny: the JSON of an order, in whole or in part.
const answered = ({ escrowId, state, pending, history = [] }: any): Outcome => ({
  ...{ code: undefined, message: '', retryAfter: undefined, escrowId, state, pending },
  history: history.map((change: { state: string }) => change.state),
});

function ofRest({ status, json, headers }: RestAnswer): Outcome {
  return status === 200 ? answered(json) : refused(json.code, json.message, headers['retry-after']);
}

async function ofTyped(call: Promise<object | undefined>): Promise<Outcome> {
  try {
    return answered(await call);
  } catch (error) {
    assert.ok(error instanceof ConnectError, String(error));
    const [info] = error.findDetails(ErrorInfoSchema);
    const retryAfter = error.metadata.get('Retry-After') ?? undefined;
    return refused(info?.reason as Reason, error.rawMessage, retryAfter);
  }
}

const stateName = (state: Escrow_State) =>
  Object.entries(Escrow_State).find(([, number]) => number === state)?.[0];

/** The documented JSON of an order. */
const jsonOf = ({ escrow }: { escrow?: Escrow | undefined }): object =>
  toJson(EscrowSchema, escrow ?? assert.fail('no escrow')) as object;

/** Starts a service, and opens both of its doors. */
export async function startDoors(
  t: Pick<TestContext, 'after'>,
  options: ServiceOptions = {},
): Promise<EscrowDoors> {
  const service = await startService(t, options);
  return doorsOf(service, await service.platform());
}

/** Both doors of a service that runs, for a platform that it knows. */
export async function doorsOf(service: TestService, platform: EscrowDoors['platform']): Promise<EscrowDoors> {
  const { escrows } = typedClients(createTypedTransport(service.internalUrl, await service.token()));
  const rest: EscrowDoor = {
    open: async (filingNo, parties) => ofRest(await openEscrow(service, platform, filingNo, parties)),
    get: async (escrowId) => ofRest(await getEscrow(service, platform, escrowId)),
    release: async (escrowId) => ofRest(await releaseEscrow(service, platform, escrowId)),
    refund: async (escrowId) => ofRest(await refundEscrow(service, platform, escrowId)),
  };
  const typed: EscrowDoor = {
    open: (filingNo, parties) => {
      const terms = { ...escrowTerms(filingNo), type: Escrow_Type.GUARANTEE, amount: 128_000_000n };
      const created = escrows.createEscrow({ ...terms, ...parties });
      return ofTyped(created.then(({ state, ...rest }) => ({ ...rest, state: stateName(state) })));
    },
    get: (escrowId) => ofTyped(escrows.getEscrow({ escrowId }).then(jsonOf)),
    release: (escrowId) => ofTyped(escrows.releaseEscrow({ escrowId }).then(jsonOf)),
    refund: (escrowId) => ofTyped(escrows.refundEscrow({ escrowId }).then(jsonOf)),
  };
  return {
    service,
    platform,
    doors: { REST: rest, 'typed RPC': typed },
    file: async () => (await fileArtwork(service, platform)).json.filingNo,
    transfersOf: async (filingNo) => {
      const { records } = (await askProvenance(service, platform, filingNo)).json;
      return records.filter(({ event }: { event: string }) => event === 'TRANSFER').length;
    },
  };
}
