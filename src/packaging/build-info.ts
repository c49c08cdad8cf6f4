import packageJson from '../../package.json' with { type: 'json' };

/** Identifies a build of the service. */
export interface BuildInfo {
  /** As in package.json. */
  readonly version: string;
  /** The git commit, 40 hex digits, followed by `-dirty` if files differed from it; undefined in a checkout. */
  readonly commit: string | undefined;
}

/** The bundler defines it. */
declare const ARTSEAL_COMMIT: string | undefined;

/** The running build. */
export const buildInfo: BuildInfo = {
  version: packageJson.version,
  commit: typeof ARTSEAL_COMMIT === 'undefined' ? undefined : ARTSEAL_COMMIT,
};

/** What users of this build type for `artseal`. */
export const commandName = buildInfo.commit === undefined ? 'npm run -s artseal --' : 'artseal';
