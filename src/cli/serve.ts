import type { Logger } from 'pino';
import { wantsTraces } from '../api/tracing.ts';
import type { App } from '../app/app.ts';
import {
  type Config,
  type LogFormat,
  readServingConfig,
  reloadableSettings,
  unknownSettings,
} from '../config/config.ts';
import { issueSandboxCredentials, sandboxCredentialsFile } from '../config/sandbox-credentials.ts';
import { exampleArtwork } from '../domain/example.ts';
import { buildInfo, commandName } from '../packaging/build-info.ts';
import { ensureRuntimeFlags, keepHeapSmall } from '../packaging/runtime.ts';
import { createLogOutput, type LogOutput } from '../telemetry/log-output.ts';
import type { Traces } from '../telemetry/traces/traces.ts';
import { userActor } from './actor.ts';
import { type Command, exitCodes, type Terminal } from './command.ts';
import { notifyReady } from './notify-ready.ts';
import { printable } from './printable.ts';

/** How often log lines are written at the latest, in milliseconds. */
const logEveryMs = 250;
/** How long the exit waits for readers of the output once all is closed, in milliseconds. */
const lastLinesMs = 1_000;

/** `artseal serve` */
export const serve: Command = {
  usage: 'serve',
  summary: 'serve both doors until SIGTERM or SIGINT',
  details: [
    'Prints one line, "artseal ready", with its addresses once it accepts connections.',
    'Writes one line a call to standard error: JSON, or text on a terminal (ARTSEAL_LOG_FORMAT).',
    'SIGHUP has it read master keys and certificates anew.',
  ],
  run: async (_, terminal) => {
    // First, since what a setting names may be a pipe, which only one process can read.
    ensureRuntimeFlags(terminal.env);
    const config = readServingConfig(terminal.env);
    // What is large is loaded only now, since the process may have been started anew.
    const { pino } = await import('pino');
    // This stream waits for room in a pipe; a write to its file would block a thread, and the exit with it.
    const output = createLogOutput(process.stderr);
    const log = pino(
      { level: config.logLevel, base: null, timestamp: createLogTime() },
      await formatted(output, config.logFormat),
    );
    writeRegularly(output, log);
    log.info(buildInfo, 'starting');
    for (const variable of unknownSettings(terminal.env)) log.warn({ variable }, 'no such setting');
    try {
      await serveUntilStopped(config, log, terminal);
    } finally {
      output.flush();
      // Not reached if all is read sooner: only lines that wait for their reader keep the process.
      setTimeout(() => process.exit(), lastLinesMs).unref();
    }
    return exitCodes.done;
  },
};

/** Where lines of the log go, in the format of the settings. */
async function formatted(output: LogOutput, format: LogFormat): Promise<Pick<LogOutput, 'write'>> {
  const isText = format === 'text' || (format === 'auto' && process.stderr.isTTY);
  if (!isText) return output;
  const { textOfLine } = await import('../telemetry/log-text.ts');
  return { write: (line) => output.write(printable(textOfLine(line))) };
}

function writeRegularly(output: LogOutput, log: Logger): void {
  const write = () => {
    const lines = output.takeDropped();
    if (lines > 0) log.warn({ lines }, 'log lines were dropped: they were not read in time');
    output.flush();
  };
  setInterval(write, logEveryMs).unref();
  process.once('exit', write);
}

async function serveUntilStopped(config: Config, log: Logger, terminal: Terminal): Promise<void> {
  const [stopped, stoppedAgain] = stopSignals();
  const reloads = reloadSignals(log);
  // The thread of the store starts while the rest is loaded, which takes as long.
  const { openForServing } = await import('../operations/registry.ts');
  const opening = openForServing(config);
  const [{ startApp }] = await Promise.all([import('../app/app.ts'), opening]);
  const traces = await tracesFor(terminal.env, log);
  const app = await startApp(config, log, {}, opening, traces);
  try {
    if (config.environment === 'sandbox') await welcome(app, config, terminal);
    keepHeapSmall();
    reloads.answer(() => app.reload(reloadableSettings(terminal.env)));
    terminal.print(readyLine(app));
    notifyReady(terminal.env).catch((error) => log.warn({ err: error }, 'systemd was not told of it'));
    const lost = app.store.lost.then((error) => {
      log.fatal({ err: error }, 'the store is lost: calls are refused and the service ends');
      throw new Error('the store is lost, so there is nothing left to serve', { cause: error });
    });
    const signal = await Promise.race([stopped, lost]);
    const { drainDelayS } = config;
    if (drainDelayS > 0) {
      app.drain();
      log.info({ signal, drainDelayS }, 'draining: calls are still taken');
      await Promise.race([passed(drainDelayS), stoppedAgain, lost]);
    }
    log.info({ signal }, 'closing');
  } finally {
    await app.close();
    await traces?.close();
  }
}

/** What traces calls, if the environment asks for that; a service that cannot be traced serves all the same. */
async function tracesFor(env: NodeJS.ProcessEnv, log: Logger): Promise<Traces | undefined> {
  if (!wantsTraces(env)) return undefined;
  const { openTraces } = await import('../telemetry/traces/traces.ts');
  try {
    return openTraces(env, log);
  } catch (error) {
    log.error({ why: error instanceof Error ? error.message : String(error) }, 'calls are not traced');
    return undefined;
  }
}

/** Two promises, of the first and of the second signal that asks the process to stop. */
function stopSignals(): readonly [Promise<string>, Promise<string>] {
  const [first, second] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
  const awaited = [first, second];
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => awaited.shift()?.resolve(signal));
  }
  return [first.promise, second.promise];
}

/** Resolves after so many seconds, which do not keep the process. */
function passed(seconds: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  setTimeout(resolve, seconds * 1_000).unref();
  return promise;
}

/** Takes SIGHUP from now on; one that comes before there is an answer to it is answered then. */
function reloadSignals(log: Logger): { answer(reload: () => Promise<void>): void } {
  let isAsked = false;
  let reload = async () => {
    isAsked = true;
  };
  process.on('SIGHUP', () => {
    log.info(
      'SIGHUP: files that settings name are read anew; all other settings stay as they were at the start',
    );
    void reload();
  });
  return {
    answer: (answer) => {
      reload = answer;
      if (isAsked) void reload();
    },
  };
}

/** What says where the service listens. */
function readyLine({ publicUrl, internalUrl, metricsAddress }: App): string {
  const doors = `artseal ready public=${publicUrl} internal=${internalUrl}`;
  return metricsAddress === undefined ? doors : `${doors} metrics=http://${metricsAddress}/metrics`;
}

/** Gives an empty sandbox its first credentials and says what to do with them. */
async function welcome(
  app: Parameters<typeof issueSandboxCredentials>[0],
  { dataDir, provider }: Config,
  { env, print }: Terminal,
) {
  const by = userActor(env, 'the first start of a sandbox');
  if (!(await issueSandboxCredentials(app, dataDir, by))) return;
  print(`A new sandbox: its API key and operator token are in ${sandboxCredentialsFile(dataDir)}.`);
  print('A first call, from another shell (with the same ARTSEAL_ variables, if you set any):');
  print(`  ${commandName} call POST /api/v1/filing '${JSON.stringify(exampleArtwork)}'`);
  if (!provider.movesMoney) print(`All calls in a row: ${commandName} demo`);
}

/** The time of a log line, RFC 3339, made once a millisecond: there may be many lines in one. */
function createLogTime(): () => string {
  let madeAtMs = 0;
  let made = '';
  return () => {
    const nowMs = Date.now();
    if (nowMs !== madeAtMs) made = `,"time":"${new Date(nowMs).toISOString()}"`;
    madeAtMs = nowMs;
    return made;
  };
}
