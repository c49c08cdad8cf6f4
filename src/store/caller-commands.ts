import type { Actor } from '../domain/audit-entry.ts';
import type { AgreementChange, KeyStatus, PlatformLimits, PlatformStatus, Tier } from '../domain/caller.ts';
import type { Scope } from '../domain/token.ts';
import type { CallerRef } from './filing-commands.ts';
import type { Page, PageQuery } from './paging.ts';

/** An API key and the platform that it identifies. */
export interface StoredKey extends CallerRef {
  readonly id: number;
  /** Public handle. */
  readonly keyId: string;
  readonly apiKey: string;
  readonly sealedSecret: Uint8Array;
  /** As set last; what it is at a time, statusAt tells. */
  readonly status: KeyStatus;
  /** Unix seconds. */
  readonly createdAtS: number;
  /** Unix seconds from which the key counts as revoked; null for never. */
  readonly expiresAtS: number | null;
  readonly tier: Tier;
  /** Calls a month; null for unlimited. */
  readonly monthlyQuota: number | null;
  /** Filing numbers of a year that the platform may use; null for no cap. */
  readonly filingCap: number | null;
  readonly platformStatus: PlatformStatus;
}

/** A service token and the internal caller that it identifies. */
export interface StoredToken extends CallerRef {
  /** Public handle. */
  readonly tokenId: string;
  readonly scopes: readonly Scope[];
  /** The platform that it acts for; null if it acts for its own caller. */
  readonly platform: Pick<Platform, 'callerId' | 'caller' | 'status' | 'filingCap'> | null;
  /** Unix seconds. */
  readonly createdAtS: number;
  /** Unix seconds from which it is good for nothing; null for never. */
  readonly expiresAtS: number | null;
  /** Unix seconds; null if it was not revoked. */
  readonly revokedAtS: number | null;
}

/** A key as minted, its secret sealed. */
export type NewKey = Pick<StoredKey, 'keyId' | 'apiKey' | 'sealedSecret' | 'createdAtS'>;

/** A token as minted, known to the store by its hash alone. */
export interface NewToken extends Pick<StoredToken, 'tokenId' | 'scopes' | 'createdAtS' | 'expiresAtS'> {
  readonly sha256: Uint8Array;
  /** Name of the platform that it is to act for; undefined for none. */
  readonly platform: string | undefined;
}

/** Another seal of the same secret. */
export interface NewSeal {
  /** The id of an API key or of a webhook, or the verifier key of a key of the evidence log. */
  readonly keyId: string;
  /** What it takes the place of. */
  readonly from: Uint8Array;
  readonly to: Uint8Array;
}

/** A platform to register. */
export interface NewPlatform {
  readonly name: string;
  readonly tier: Tier;
  /** Calls a month; undefined for unlimited. */
  readonly monthlyQuota: number | undefined;
  /** Filing numbers of a year that it may use; undefined for no cap. */
  readonly filingCap?: number | undefined;
}

/** A platform as registered. */
export interface Platform extends CallerRef, PlatformLimits {
  readonly status: PlatformStatus;
}

/** How much a platform called in a month. */
export interface PlatformUsage extends Platform {
  /** Calls that admission counted. */
  readonly calls: number;
}

/**
 * Platforms with their keys, internal callers with their tokens. What changes something takes who does it, and leaves an
 * act in the log if there was something to change.
 */
export interface CallerCommands {
  /** Whether there is any caller at all. */
  HasCallers: { readonly takes: object; readonly gives: boolean };
  /** Registers a platform with its first key. Refused with VALIDATION_FAILED if the name is taken. */
  AddPlatform: {
    readonly takes: { readonly by: Actor; readonly platform: NewPlatform; readonly key: NewKey };
    readonly gives: StoredKey;
  };
  /** Registers the first platform with its key and the first internal caller with its token, together: two acts. */
  AddFirstCallers: {
    readonly takes: {
      readonly by: Actor;
      readonly platform: NewPlatform;
      readonly key: NewKey;
      readonly service: string;
      readonly token: NewToken;
    };
    readonly gives: undefined;
  };
  /** Keys by age, oldest first. */
  ListKeys: { readonly takes: { readonly page: PageQuery }; readonly gives: Page<StoredKey> };
  /**
   * Adds a key to the caller of an existing one, which is to end at `endsAtS`, as `rotate` says. Refused with NOT_FOUND,
   * VALIDATION_FAILED.
   */
  RotateKey: {
    readonly takes: {
      readonly by: Actor;
      readonly keyId: string;
      readonly key: NewKey;
      readonly endsAtS: number;
    };
    readonly gives: StoredKey;
  };
  /** Changes the status of a key. Refused with NOT_FOUND; VALIDATION_FAILED for a revoked key, which stays revoked. */
  SetKeyStatus: {
    readonly takes: { readonly by: Actor; readonly keyId: string; readonly status: KeyStatus };
    readonly gives: StoredKey;
  };
  /** Refused with NOT_FOUND. */
  FindKey: { readonly takes: { readonly keyId: string }; readonly gives: StoredKey };
  /** Replaces seals, but those that are not as given any more, by seals under the master key of that name; how many were. */
  ReplaceSeals: {
    readonly takes: { readonly by: Actor; readonly masterKey: string; readonly seals: readonly NewSeal[] };
    readonly gives: number;
  };
  /** Finds a platform or an internal caller by name. Refused with NOT_FOUND. */
  FindCaller: { readonly takes: { readonly name: string }; readonly gives: CallerRef };
  /** Finds a platform by name. */
  FindPlatform: { readonly takes: { readonly name: string }; readonly gives: Platform | undefined };
  /** Platforms by age, oldest first. */
  ListPlatforms: { readonly takes: { readonly page: PageQuery }; readonly gives: Page<Platform> };
  /** Suspends or resumes a platform as a whole; the status of each of its keys stays. Refused with NOT_FOUND. */
  SetPlatformStatus: {
    readonly takes: { readonly by: Actor; readonly name: string; readonly status: PlatformStatus };
    readonly gives: Platform;
  };
  /**
   * Adds a token to the internal caller of that name, registering it if need be. Refused with VALIDATION_FAILED if a
   * platform has the name, and if none has that of the platform that the token is to act for.
   */
  AddToken: {
    readonly takes: { readonly by: Actor; readonly name: string; readonly token: NewToken };
    readonly gives: StoredToken;
  };
  /** All tokens, oldest first. */
  ListTokens: { readonly takes: { readonly page: PageQuery }; readonly gives: Page<StoredToken> };
  /** Refused with NOT_FOUND. */
  RevokeToken: {
    readonly takes: { readonly by: Actor; readonly tokenId: string };
    readonly gives: StoredToken;
  };
  /**
   * Changes tier, quota and cap on filings of a platform, which hold from its next call on. Refused with NOT_FOUND; VALIDATION_FAILED as
   * `changeAgreement` says.
   */
  ChangeAgreement: {
    readonly takes: { readonly by: Actor; readonly name: string; readonly change: AgreementChange };
    readonly gives: Platform;
  };
  /** What platforms called in a month, YYYY-MM, those that did not call included; oldest platform first. */
  ListUsage: {
    readonly takes: { readonly month: string; readonly page: PageQuery };
    readonly gives: Page<PlatformUsage>;
  };
  /** Calls that admission counted in a month, YYYY-MM. */
  CountCalls: {
    readonly takes: { readonly callerId: number; readonly month: string };
    readonly gives: number;
  };
  /** Filings that a caller has of a year of numbers. */
  CountFilings: {
    readonly takes: { readonly callerId: number; readonly year: number };
    readonly gives: number;
  };
}
