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
  /** The stored status. `statusAt` gives the effective one at a time. */
  readonly status: KeyStatus;
  /** Unix seconds. */
  readonly createdAtS: number;
  /** Unix seconds from which the key counts as revoked; null for never. */
  readonly expiresAtS: number | null;
  readonly tier: Tier;
  /** Calls a month; null for unlimited. */
  readonly monthlyQuota: number | null;
  /** Filing numbers a year; null for no cap. */
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
  /** Unix seconds from which it is invalid; null for never. */
  readonly expiresAtS: number | null;
  /** Unix seconds; null if it was not revoked. */
  readonly revokedAtS: number | null;
}

/** A new key with its secret encrypted. */
export type NewKey = Pick<StoredKey, 'keyId' | 'apiKey' | 'sealedSecret' | 'createdAtS'>;

/** A new token. The store keeps only its hash. */
export interface NewToken extends Pick<StoredToken, 'tokenId' | 'scopes' | 'createdAtS' | 'expiresAtS'> {
  readonly sha256: Uint8Array;
  /** The name of the platform that it acts for; undefined for none. */
  readonly platform: string | undefined;
}

/** The same secret, encrypted again. */
export interface NewSeal {
  /** The id of an API key or webhook, or the verifier key of an evidence log key. */
  readonly keyId: string;
  /** The ciphertext that it replaces. */
  readonly from: Uint8Array;
  readonly to: Uint8Array;
}

/** A platform to register. */
export interface NewPlatform {
  readonly name: string;
  readonly tier: Tier;
  /** Calls a month; undefined for unlimited. */
  readonly monthlyQuota: number | undefined;
  /** Filing numbers a year; undefined for no cap. */
  readonly filingCap?: number | undefined;
}

/** A platform as registered. */
export interface Platform extends CallerRef, PlatformLimits {
  readonly status: PlatformStatus;
}

/** The calls of a platform in a month. */
export interface PlatformUsage extends Platform {
  /** Calls counted against the quota. */
  readonly calls: number;
}

/** Platforms and their keys, internal callers and their tokens. A command with `by` writes an audit entry if it changes something. */
export interface CallerCommands {
  /** Returns whether there is any caller. */
  HasCallers(): boolean;
  /** Registers a platform with its first key. Fails with VALIDATION_FAILED if the name is taken. */
  AddPlatform(command: {
    readonly by: Actor;
    readonly platform: NewPlatform;
    readonly key: NewKey;
  }): StoredKey;
  /** Registers the first platform with its key and the first internal caller with its token. Writes two audit entries. */
  AddFirstCallers(command: {
    readonly by: Actor;
    readonly platform: NewPlatform;
    readonly key: NewKey;
    readonly service: string;
    readonly token: NewToken;
  }): undefined;
  /** Lists keys, of one platform or of all, oldest first. */
  ListKeys(command: { readonly platform?: string | undefined; readonly page: PageQuery }): Page<StoredKey>;
  /**
   * Adds a key to the caller of an existing key, which then expires at `endsAtS`, as `rotate` says. Fails with NOT_FOUND,
   * VALIDATION_FAILED.
   */
  RotateKey(command: {
    readonly by: Actor;
    readonly keyId: string;
    readonly key: NewKey;
    readonly endsAtS: number;
  }): StoredKey;
  /** Changes the status of a key. Fails with NOT_FOUND, and with VALIDATION_FAILED for a revoked key. */
  SetKeyStatus(command: {
    readonly by: Actor;
    readonly keyId: string;
    readonly status: KeyStatus;
  }): StoredKey;
  /** Fails with NOT_FOUND. */
  FindKey(command: { readonly keyId: string }): StoredKey;
  /** Replaces ciphertexts by those of the master key of that name. Skips those that have changed. Returns the number replaced. */
  ReplaceSeals(command: {
    readonly by: Actor;
    readonly masterKey: string;
    readonly seals: readonly NewSeal[];
  }): number;
  /** Finds a platform or an internal caller by name. Fails with NOT_FOUND. */
  FindCaller(command: { readonly name: string }): CallerRef;
  /** Finds a platform by name. */
  FindPlatform(command: { readonly name: string }): Platform | undefined;
  /** Lists platforms, oldest first. */
  ListPlatforms(command: { readonly page: PageQuery }): Page<Platform>;
  /** Suspends or resumes a platform. The status of its keys stays. Fails with NOT_FOUND. */
  SetPlatformStatus(command: {
    readonly by: Actor;
    readonly name: string;
    readonly status: PlatformStatus;
  }): Platform;
  /**
   * Adds a token to the internal caller of that name and registers the caller if it is new. Fails with VALIDATION_FAILED if a
   * platform has the name, or if the platform that the token acts for does not exist. Revokes the token `replacedId`, and fails
   * with PERMISSION_DENIED if it is revoked already.
   */
  AddToken(command: {
    readonly by: Actor;
    readonly name: string;
    readonly token: NewToken;
    readonly replacedId?: string | undefined;
  }): StoredToken;
  /** Lists tokens, oldest first. */
  ListTokens(command: { readonly page: PageQuery }): Page<StoredToken>;
  /** Fails with NOT_FOUND. */
  RevokeToken(command: { readonly by: Actor; readonly tokenId: string }): StoredToken;
  /**
   * Changes tier, quota and filing cap of a platform, effective from its next call. Fails with NOT_FOUND, and with
   * VALIDATION_FAILED as `changeAgreement` says.
   */
  ChangeAgreement(command: {
    readonly by: Actor;
    readonly name: string;
    readonly change: AgreementChange;
  }): Platform;
  /** Lists the calls of all platforms in a month, YYYY-MM, oldest platform first. */
  ListUsage(command: { readonly month: string; readonly page: PageQuery }): Page<PlatformUsage>;
  /** Returns the calls counted against the quota in a month, YYYY-MM. */
  CountCalls(command: { readonly callerId: number; readonly month: string }): number;
  /** Returns the number of filings that a caller has in a year. */
  CountFilings(command: { readonly callerId: number; readonly year: number }): number;
}
