import packageJson from '../../package.json' with { type: 'json' };

/** Which build of the service this is. */
export interface BuildInfo {
  /** As in package.json. */
  readonly version: string;
  /**
   * The git commit that it was built from, 40 hex digits, with `-dirty` behind it where files differed from it; undefined
   * where it was not built, as in a checkout.
   */
  readonly commit: string | undefined;
}

/** Written in by the bundler. */
declare const ARTSEAL_COMMIT: string | undefined;

/** The build that runs. */
export const buildInfo: BuildInfo = {
  version: packageJson.version,
  commit: typeof ARTSEAL_COMMIT === 'undefined' ? undefined : ARTSEAL_COMMIT,
};

/** What people type for `artseal` where they have this build. */
export const commandName = buildInfo.commit === undefined ? 'npm run -s artseal --' : 'artseal';
