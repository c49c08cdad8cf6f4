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
import { eventually } from './eventually.ts';
import { escrowTerms } from './samples.ts';
import { type ServiceOptions, startService, type TestService } from './service.ts';
import type { RestAnswer } from './signed-request.ts';
import { typedClients } from './typed-clients.ts';

/** The result of a call about an order, through either API. */
export interface EscrowResult {
  /** The reason if the call was rejected. */
  readonly code: Reason | undefined;
  readonly message: string;
  readonly retryAfter: string | undefined;
  readonly escrowId: string;
  readonly state: EscrowState | undefined;
  /** The open instruction. */
  readonly pending: string | undefined;
  /** The states of the order, oldest first; empty if the response has none. */
  readonly history: readonly string[];
}

/** The operations on orders through one API. */
export interface EscrowApi {
  open(filingNo: string): Promise<EscrowResult>;
  get(escrowId: string): Promise<EscrowResult>;
  release(escrowId: string): Promise<EscrowResult>;
  refund(escrowId: string): Promise<EscrowResult>;
}

/** The APIs. */
export const apiNames = ['REST', 'RPC'] as const;

/** Both APIs of a service, and a platform that files and sells. */
export interface EscrowApis {
  readonly service: TestService;
  readonly platform: ApiCredentials & { readonly caller: string };
  readonly apis: Readonly<Record<(typeof apiNames)[number], EscrowApi>>;
  /** Files an artwork of the platform. Returns its filing number. */
  file(): Promise<string>;
  /** How often an artwork was transferred. */
  transfersOf(filingNo: string): Promise<number>;
}

const rejected = (code: Reason, message: string, retryAfter: string | undefined): EscrowResult => ({
  ...{ code, message, retryAfter, state: undefined, pending: undefined, history: [] },
  escrowId: /ES-\d{4}-[0-9A-Z]{4}/.exec(message)?.[0] ?? '',
});

// biome-ignore lint/suspicious/noExplicitAny: the JSON of an order, or a part of it.
const accepted = ({ escrowId, state, pending, history = [] }: any): EscrowResult => ({
  ...{ code: undefined, message: '', retryAfter: undefined, escrowId, state, pending },
  history: history.map((change: { state: string }) => change.state),
});

function ofRest({ status, json, headers }: RestAnswer): EscrowResult {
  return status === 200 ? accepted(json) : rejected(json.code, json.message, headers['retry-after']);
}

async function ofRpc(call: Promise<object | undefined>): Promise<EscrowResult> {
  try {
    return accepted(await call);
  } catch (error) {
    assert.ok(error instanceof ConnectError, String(error));
    const [info] = error.findDetails(ErrorInfoSchema);
    const retryAfter = error.metadata.get('Retry-After') ?? undefined;
    return rejected(info?.reason as Reason, error.rawMessage, retryAfter);
  }
}

const stateName = (state: Escrow_State) =>
  Object.entries(Escrow_State).find(([, number]) => number === state)?.[0];

/** The documented JSON of an order. */
const jsonOf = ({ escrow }: { escrow?: Escrow | undefined }): object =>
  toJson(EscrowSchema, escrow ?? assert.fail('no escrow')) as object;

/** Waits until an order has this state. */
export function becomes(api: EscrowApi, escrowId: string, state: EscrowState): Promise<EscrowResult> {
  return eventually(`${escrowId} is ${state}`, 60_000, async () => {
    const now = await api.get(escrowId);
    return now.state === state && now;
  });
}

/** Starts a service with a platform. */
export async function startApis(
  t: Pick<TestContext, 'after'>,
  options: ServiceOptions = {},
): Promise<EscrowApis> {
  const service = await startService(t, options);
  return apisOf(service, await service.platform());
}

/** Returns both APIs of a running service, for a platform that it knows. */
export async function apisOf(service: TestService, platform: EscrowApis['platform']): Promise<EscrowApis> {
  const { escrows } = typedClients(createTypedTransport(service.internalUrl, await service.token()));
  const rest: EscrowApi = {
    open: async (filingNo) => ofRest(await openEscrow(service, platform, filingNo)),
    get: async (escrowId) => ofRest(await getEscrow(service, platform, escrowId)),
    release: async (escrowId) => ofRest(await releaseEscrow(service, platform, escrowId)),
    refund: async (escrowId) => ofRest(await refundEscrow(service, platform, escrowId)),
  };
  const rpc: EscrowApi = {
    open: (filingNo) => {
      const terms = { ...escrowTerms(filingNo), type: Escrow_Type.GUARANTEE, amount: 128_000_000n };
      const created = escrows.createEscrow(terms);
      return ofRpc(created.then(({ state, ...rest }) => ({ ...rest, state: stateName(state) })));
    },
    get: (escrowId) => ofRpc(escrows.getEscrow({ escrowId }).then(jsonOf)),
    release: (escrowId) => ofRpc(escrows.releaseEscrow({ escrowId }).then(jsonOf)),
    refund: (escrowId) => ofRpc(escrows.refundEscrow({ escrowId }).then(jsonOf)),
  };
  return {
    service,
    platform,
    apis: { REST: rest, RPC: rpc },
    file: async () => (await fileArtwork(service, platform)).json.filingNo,
    transfersOf: async (filingNo) => {
      const { records } = (await askProvenance(service, platform, filingNo)).json;
      return records.filter(({ event }: { event: string }) => event === 'TRANSFER').length;
    },
  };
}
