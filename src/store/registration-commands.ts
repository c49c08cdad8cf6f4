import type { Actor } from '../domain/audit-entry.ts';
import type { Tier } from '../domain/caller.ts';
import type { NoticeState, RegistrationTexts } from '../domain/registration.ts';
import type { NewKey, NewPlatform, StoredKey } from './caller-commands.ts';
import type { Page, PageQuery } from './paging.ts';

/** A pre-registration. */
export interface Registration extends RegistrationTexts {
  /** Counts up in the order of arrival. */
  readonly id: number;
  /** Public handle. */
  readonly registrationId: string;
  readonly tier: Tier;
  readonly isByForm: boolean;
  /** Unix seconds. */
  readonly registeredAtS: number;
  /** When the sandbox is opened for it, Unix seconds; null without an appointment. */
  readonly appointmentAtS: number | null;
  /** Name of its platform; null until it is approved. */
  readonly platform: string | null;
  /** When its link ends, Unix seconds; null if there is none. */
  readonly linkExpiresAtS: number | null;
  /** When the key was issued by the link, Unix seconds; null if it was not. */
  readonly claimedAtS: number | null;
  /** Null until an attempt to send the notice begins. */
  readonly notice: NoticeState | null;
  /** When the notice got this state, Unix seconds; null without one. */
  readonly noticeAtS: number | null;
  /** The words of the mail server, or of the operator; null if there are none. */
  readonly noticeDetail: string | null;
}

/** A new pre-registration. */
export interface NewRegistration extends RegistrationTexts {
  readonly registrationId: string;
  /** Identifies the address: the same for `emailKey` of two addresses that are the same. */
  readonly emailDigest: Uint8Array;
  readonly tier: Tier;
}

/** The token of a one-time link, of which the store keeps only the hash. */
export interface AccessLink {
  readonly sha256: Uint8Array;
  /** Unix seconds. */
  readonly expiresAtS: number;
}

/**
 * How an attempt to send a notice ended. NOT_SENT: the mail server certainly did not accept the mail, so it may be sent later. UNKNOWN:
 * it may have accepted it.
 */
export type NoticeResult = 'SENT' | 'BOUNCED' | 'UNKNOWN' | 'NOT_SENT';

/**
 * The next step of a run that sends notices. SEND: this attempt is the only one that may send to the registration. UNKNOWN: an attempt
 * ended without a result, so its registration gets no mail any more. BUSY: another attempt is under way. DONE: no registration is due.
 * `due` counts the registrations that are due after the step.
 */
export type NextNotice =
  | { readonly next: 'SEND' | 'UNKNOWN'; readonly registration: Registration; readonly due: number }
  | { readonly next: 'BUSY' }
  | { readonly next: 'DONE' };

/** Pre-registrations, their approval, and the notices to them. A command with `by` writes an audit entry if it changes something. */
export interface RegistrationCommands {
  /**
   * Adds a pre-registration of an operator. An address that is known keeps its first place: its registration is returned as it is. One
   * that was removed gets its texts again.
   */
  AddRegistration(command: { readonly by: Actor; readonly registration: NewRegistration }): {
    readonly registration: Registration;
    readonly isNew: boolean;
  };
  /**
   * Adds a pre-registration of the form at `atS`, Unix seconds; changes nothing for an address that is known. Returns false, and adds
   * nothing, if the form has added `max`. Neither the result nor its time shows whether an address is known.
   */
  TakeForm(command: {
    readonly atS: number;
    readonly max: number;
    readonly registration: NewRegistration;
  }): boolean;
  /** Lists registrations in the order of arrival: all, those whose notice is DUE, or those with a state of it. */
  ListRegistrations(command: {
    readonly notice: NoticeState | 'DUE' | undefined;
    readonly page: PageQuery;
  }): Page<Registration>;
  /** Sets the appointment, Unix seconds, or removes it. Fails with NOT_FOUND. */
  SetAppointment(command: {
    readonly by: Actor;
    readonly registrationId: string;
    readonly appointmentAtS: number | null;
  }): Registration;
  /**
   * Registers a platform without a key, and a link that issues its first one. `sha256` of the result is that of the link, as it was
   * stored. Fails with NOT_FOUND, and with VALIDATION_FAILED if it is approved already, or the name is taken.
   */
  ApproveRegistration(command: {
    readonly by: Actor;
    readonly registrationId: string;
    readonly platform: NewPlatform;
    readonly link: AccessLink;
  }): Registration & Pick<AccessLink, 'sha256'>;
  /**
   * Replaces the link; the one before ends. Fails with NOT_FOUND, and with VALIDATION_FAILED if it is not approved, or if it was claimed
   * and the platform has a key that is not revoked.
   */
  RenewAccessLink(command: {
    readonly by: Actor;
    readonly registrationId: string;
    readonly link: AccessLink;
  }): Registration & Pick<AccessLink, 'sha256'>;
  /** Finds the registration whose unclaimed link has this hash and is valid at `nowS`, Unix seconds. */
  FindAccessLink(command: { readonly sha256: Uint8Array; readonly nowS: number }): Registration | undefined;
  /**
   * Claims such a link, once, and issues the key. Returns undefined if there is no such link. Writes an audit entry in the name of the
   * link.
   */
  ClaimAccess(command: { readonly sha256: Uint8Array; readonly key: NewKey }): StoredKey | undefined;
  /**
   * Claims the first registration in the order of arrival that is due, for an attempt. An attempt that began at `deadBeforeS` or
   * before, Unix seconds, and has no result, is over: its registration becomes UNKNOWN. With `by`, a claim writes the audit entry of its
   * run.
   */
  ClaimNotice(command: {
    readonly by: Actor | undefined;
    readonly attempt: string;
    readonly nowS: number;
    readonly deadBeforeS: number;
  }): NextNotice;
  /**
   * Stores the result of an attempt, also if the registration has become UNKNOWN meanwhile. Does nothing if the registration is no
   * longer that of the attempt. Returns the number of registrations that are due.
   */
  RecordNotice(command: {
    readonly registrationId: string;
    readonly attempt: string;
    readonly result: NoticeResult;
    readonly detail: string;
    readonly nowS: number;
  }): number;
  /**
   * Marks a notice as BOUNCED. One that is due gets no mail then. Fails with NOT_FOUND, and with VALIDATION_FAILED while it is sent.
   */
  MarkBounced(command: {
    readonly by: Actor;
    readonly registrationId: string;
    readonly detail: string;
  }): Registration;
  /**
   * Removes a registration and its texts; the platform stays. If a notice was begun, its state and the digest of the address are
   * kept, so that the address never gets a second one. Fails with NOT_FOUND, and with VALIDATION_FAILED while a notice is sent.
   */
  RemoveRegistration(command: { readonly by: Actor; readonly registrationId: string }): undefined;
}
