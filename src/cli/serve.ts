import pino from 'pino';
import { startApp } from '../app.ts';
import { readConfig, unknownSettings } from '../config.ts';
import { issueSandboxCredentials, sandboxCredentialsFile } from '../sandbox-credentials.ts';
import { readWords } from './arguments.ts';
import { type Command, exitCodes, type Terminal } from './command.ts';
import { exampleArtwork } from './example.ts';

/** Bytes of log lines that are gathered before they are written, and how often they are written anyway. */
const logBuffer = { bytes: 4_096, flushEveryMs: 250 } as const;

/** `artseal serve` */
export const serve: Command = {
  usage: 'serve',
  summary: 'serve both doors until SIGTERM or SIGINT',
  details: [
    'Prints one line, "artseal ready", with both addresses once it accepts connections.',
    'Writes one JSON line a call to standard error.',
  ],
  run: async (words, terminal) => {
    readWords(words, 0, {});
    const config = readConfig(terminal.env);
    const destination = pino.destination({ fd: 2, sync: false, minLength: logBuffer.bytes });
    // A log that cannot be written any more must not take the service down.
    destination.on('error', () => {});
    const log = pino({ level: config.logLevel, base: null }, destination);
    setInterval(() => destination.flush(), logBuffer.flushEveryMs).unref();
    for (const variable of unknownSettings(terminal.env)) log.warn({ variable }, 'no such setting');

    const stopped = stopSignal();
    const app = await startApp(config, log);
    try {
      if (config.environment === 'sandbox') await welcome(app, config.dataDir, terminal);
      terminal.print(
        `artseal ready public=http://${app.publicAddress} internal=http://${app.internalAddress}`,
      );
      log.info({ signal: await stopped }, 'closing');
    } finally {
      await app.close();
      destination.flushSync();
    }
    return exitCodes.done;
  },
};

/** Resolves with the first signal that asks the process to stop. */
function stopSignal(): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => resolve(signal));
  return promise;
}

/** Gives an empty sandbox its first credentials and says what to do with them. */
async function welcome(
  app: Parameters<typeof issueSandboxCredentials>[0],
  dataDir: string,
  { print }: Terminal,
) {
  if (!(await issueSandboxCredentials(app, dataDir))) return;
  print(`A new sandbox: its API key and operator token are in ${sandboxCredentialsFile(dataDir)}.`);
  print('A first call, from another shell:');
  print(`  npm run -s artseal -- call POST /api/v1/filing '${JSON.stringify(exampleArtwork)}'`);
  print('All calls in a row: npm run demo');
}
