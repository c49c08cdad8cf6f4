import { isSea } from 'node:sea';
import { licencesFile, readPackaged } from '../packaging/packaged-files.ts';
import { type Command, exitCodes } from './command.ts';

/** `artseal licenses` */
export const licenses: Command = {
  usage: 'licenses',
  summary: 'print the licenses of third-party software',
  details: ['In a checkout and in the npm package they are in the folders of node_modules.'],
  run: async (_, { print }) => {
    print(
      isSea()
        ? readPackaged(licencesFile).toString()
        : 'They are in the folder of each package in node_modules.',
    );
    return exitCodes.done;
  },
};
