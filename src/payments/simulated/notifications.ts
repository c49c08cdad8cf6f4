import { createHmac, timingSafeEqual } from 'node:crypto';
import { ApiError } from '../../domain/reason.ts';
import type { Notification, SentNotification } from '../provider.ts';

/** The header that a notification is signed in: `t=<Unix seconds>,v1=<64 hex digits>`. */
export const signatureHeader = 'sim-signature';
/** How far the time of a signature may be from now, in seconds. */
export const signatureToleranceS = 300;

/** What a notification tells: that something has changed about a hold. */
export interface HoldEvent {
  /** Unique for as long as the books are kept. */
  readonly eventId: string;
  readonly holdId: string;
}

/** A notification as it is posted. */
export interface SignedNotification {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** Writes a notification and signs it. */
export function signNotification(
  secret: Uint8Array,
  { eventId, holdId }: HoldEvent,
  nowS: number,
): SignedNotification {
  return signBody(secret, JSON.stringify({ id: eventId, type: 'hold.changed', holdId }), nowS);
}

/** Signs a text as the body of a notification, whatever it says. */
export function signBody(secret: Uint8Array, text: string, nowS: number): SignedNotification {
  const body = Buffer.from(text);
  const signature = `t=${nowS},v1=${macOf(secret, String(nowS), body).toString('hex')}`;
  return { headers: { 'content-type': 'application/json', [signatureHeader]: signature }, body };
}

/** Checks whose a notification is and reads it. Throws as PaymentProvider.readNotification does. */
export function readSigned(secret: Uint8Array, { headers, body, nowS }: SentNotification): Notification {
  const [signature = '', ...others] = headers[signatureHeader] ?? [];
  const [, timestamp = '', mac = ''] = /^t=(\d{1,15}),v1=([0-9a-f]{64})$/.exec(signature) ?? [];
  if (timestamp === '' || others.length > 0) {
    refuse(`must be sent once, as t=<Unix seconds>,v1=<64 hex digits>`);
  }
  if (!timingSafeEqual(Buffer.from(mac, 'hex'), macOf(secret, timestamp, body))) {
    refuse('is not of this body and time under the key of the provider');
  }
  if (Math.abs(nowS - Number(timestamp)) > signatureToleranceS) {
    refuse(`is more than ${signatureToleranceS} seconds from the time of the server`);
  }
  return readBody(body);
}

function refuse(rule: string): never {
  throw new ApiError('SIGNATURE_INVALID', `The ${signatureHeader} header ${rule}.`);
}

function macOf(secret: Uint8Array, timestamp: string, body: Uint8Array): Buffer {
  return createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest();
}

function readBody(body: Uint8Array): Notification {
  const event = parse(body);
  if (!isRecord(event) || typeof event.id !== 'string' || event.id === '') {
    throw new ApiError('INVALID_JSON', 'The notification must be a JSON object with the id of its event.');
  }
  return {
    eventId: event.id,
    about: typeof event.holdId === 'string' ? { holdId: event.holdId } : undefined,
  };
}

function parse(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch (cause) {
    throw new ApiError('INVALID_JSON', 'The notification must be JSON in UTF-8.', {}, { cause });
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
