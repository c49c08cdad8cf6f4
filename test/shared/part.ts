import { claimsVariable, runClaimed } from './claims.ts';
import { testFile, whileAlive } from './file.ts';

const claims = process.env[claimsVariable];
if (claims === undefined) throw new Error('Start test/shared/run.ts.');

await whileAlive(() => runClaimed(claims, testFile));
