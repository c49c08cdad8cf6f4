import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises';
import type { App } from '../app/app.ts';
import { type Config, type LogFormat, readServingConfig, unknownSettings } from '../config/config.ts';
import { issueSandboxCredentials, sandboxCredentialsFile } from '../config/sandbox-credentials.ts';
import { exampleArtwork } from '../domain/example.ts';
import { errorText } from '../lib/file-errors.ts';
import { createLog, type Logger } from '../lib/log.ts';
import { buildInfo, commandName } from '../packaging/build-info.ts';
import { ensureRuntimeFlags, keepHeapSmall } from '../packaging/runtime.ts';
import { createLogOutput, type LogOutput, textOfLine } from '../telemetry/log-output.ts';
import type { Traces } from '../telemetry/traces/traces.ts';
import { type Command, printable, type Terminal } from './command.ts';

/** The longest that log lines are buffered, in milliseconds. */
const logEveryMs = 250;
/** How long the exit waits for readers of the output, in milliseconds. */
const lastLinesMs = 1_000;

/** `artseal serve` */
export const serve: Command = {
  usage: 'serve',
  summary: 'serve the public and the internal API until SIGTERM or SIGINT',
  details: [
    'Prints a line "artseal ready" with its addresses when it accepts connections.',
    'Logs one line per call to standard error: JSON, or text on a terminal (ARTSEAL_LOG_FORMAT).',
    'SIGHUP reloads master keys and certificates.',
  ],
  run: async (_, terminal) => {
    // First: this may restart the process, and a setting may name a pipe, which can be read only once.
    ensureRuntimeFlags(terminal.env);
    const config = readServingConfig(terminal.env);
    // A stream, since a blocking write to a full pipe would block the exit.
    const output = createLogOutput(process.stderr);
    const write = writerOf(output, config.logFormat);
    const log = createLog({ write, level: config.logLevel, nowMs: Date.now });
    writeRegularly(output, log);
    log.info(buildInfo, 'starting');
    for (const variable of unknownSettings(terminal.env)) log.warn({ variable }, 'not a setting');
    try {
      await serveUntilStopped(config, log, terminal);
    } finally {
      output.flush();
      // Only unread output keeps the process alive until then.
      setTimeout(() => process.exit(), lastLinesMs).unref();
    }
  },
};

/** Writes log lines in the format that the settings say. */
function writerOf(output: LogOutput, format: LogFormat): LogOutput['write'] {
  const isText = format === 'text' || (format === 'auto' && process.stderr.isTTY);
  if (!isText) return output.write;
  return (line) => output.write(printable(textOfLine(line)));
}

function writeRegularly(output: LogOutput, log: Logger): void {
  const write = () => {
    const lines = output.takeDropped();
    if (lines > 0) log.warn({ lines }, 'log lines were dropped: the reader is too slow');
    output.flush();
  };
  setInterval(write, logEveryMs).unref();
  process.once('exit', write);
}

async function serveUntilStopped(config: Config, log: Logger, terminal: Terminal): Promise<void> {
  const [stopped, stoppedAgain] = stopSignals();
  const { promise: ready, resolve: handleReloads } = Promise.withResolvers<App>();
  process.on('SIGHUP', () => {
    log.info(
      'SIGHUP: reloading the files that settings name; all other settings stay as they were at the start',
    );
    // A signal that arrives during the start is handled after it.
    void ready.then((app) => app.reload());
  });
  // The store's thread starts in this turn. It loads its modules while this thread loads the others, which blocks it.
  const { openForServing } = await import('../operations/registry.ts');
  const opening = openForServing(config);
  const loading = nextTurn().then(() => import('../app/app.ts'));
  const [{ startApp }] = await Promise.all([loading, opening]);
  const traces = await tracesFor(terminal.env, log);
  const app = await startApp(config, log, {}, opening, traces);
  try {
    if (config.environment === 'sandbox') await welcome(app, config, terminal);
    keepHeapSmall();
    handleReloads(app);
    terminal.print(readyLine(app));
    notifyReady(terminal.env).catch((error) => log.warn({ err: error }, 'systemd was not notified'));
    const lost = app.store.lost.then((error) => {
      log.fatal({ err: error }, 'the store is lost: the service rejects calls and ends');
      throw new Error('the store is lost: see the log for the cause, then restart the service', {
        cause: error,
      });
    });
    const signal = await Promise.race([stopped, lost]);
    const { drainDelayS } = config;
    if (drainDelayS > 0) {
      app.drain();
      log.info({ signal, drainDelayS }, 'draining: calls are still accepted');
      const isOver = wait(drainDelayS * 1_000, undefined, { ref: false });
      await Promise.race([isOver, stoppedAgain, lost]);
    }
    log.info({ signal }, 'closing');
  } finally {
    await app.close();
    await traces?.close();
  }
}

/**
 * Opens traces if the standard variables of OpenTelemetry enable them: an endpoint is set, and traces are not turned off. If that
 * fails, the service runs without.
 */
async function tracesFor(env: NodeJS.ProcessEnv, log: Logger): Promise<Traces | undefined> {
  const isNamed = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || env.OTEL_EXPORTER_OTLP_ENDPOINT;
  const isOff = env.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || env.OTEL_TRACES_EXPORTER === 'none';
  if (!isNamed || isOff) return undefined;
  const { openTraces } = await import('../telemetry/traces/traces.ts');
  try {
    return openTraces(env, log);
  } catch (error) {
    log.error({ why: errorText(error) }, 'calls are not traced');
    return undefined;
  }
}

/** The first and the second signal to stop. */
function stopSignals(): readonly [Promise<string>, Promise<string>] {
  const [first, second] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
  const awaited = [first, second];
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => awaited.shift()?.resolve(signal));
  }
  return [first.promise, second.promise];
}

/** The line with the addresses of the service. */
function readyLine({ publicUrl, internalUrl, metricsAddress }: App): string {
  const line = `artseal ready public=${publicUrl} internal=${internalUrl}`;
  return metricsAddress === undefined ? line : `${line} metrics=http://${metricsAddress}/metrics`;
}

/** Creates the first credentials of an empty sandbox, and says how to use them. */
async function welcome(app: App, { dataDir, provider }: Config, { env, print }: Terminal) {
  // Loaded here, since the modules that it needs would delay the thread of the store.
  const { localActor } = await import('./connection.ts');
  const by = localActor(env, 'first start of a sandbox');
  if (!(await issueSandboxCredentials(app, dataDir, by))) return;
  print(`A new sandbox: its API key and operator token are in ${sandboxCredentialsFile(dataDir)}.`);
  print('A first call, from another shell (with the same ARTSEAL_ variables, if you set any):');
  print(`  ${commandName} call POST /api/v1/filing '${JSON.stringify(exampleArtwork)}'`);
  if (!provider.movesMoney) print(`All calls in a row: ${commandName} demo`);
  print(`In a browser: ${app.publicUrl}/docs/`);
}

/**
 * Notifies systemd that the service is ready, if it waits. Node has no Unix datagram sockets, so `systemd-notify` sends it and
 * the unit needs `NotifyAccess=all`. Rejects if that program fails.
 */
async function notifyReady(env: NodeJS.ProcessEnv): Promise<void> {
  if (env.NOTIFY_SOCKET === undefined) return;
  const { execFile } = await import('node:child_process');
  const { promisify } = await import('node:util');
  await promisify(execFile)('systemd-notify', ['--ready'], { env });
}
