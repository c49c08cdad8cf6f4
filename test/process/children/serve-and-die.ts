/**
 * `artseal serve` that kills itself with SIGKILL at one named step. SERVE_AND_DIE is `<BEFORE|AFTER> <step> <kind>`:
 * the kind is that of an instruction, and the step is one of its life (see Step).
 */
import Sqlite from 'better-sqlite3';
import pino from 'pino';
import { startApp } from '../../../src/app/app.ts';
import { readConfig } from '../../../src/config/config.ts';
import { systemClock } from '../../../src/operations/registry.ts';
import type { PaymentProvider } from '../../../src/payments/provider.ts';

/** The call to the provider, and the commits by what they make durable: prepared but not given yet; given; settled. */
type Step = 'PREPARED' | 'SENT' | 'CALL' | 'SETTLED';

/** How far the newest instruction of this process has come, as the open transaction sees it. */
const progressQuery = `
  SELECT CASE
    WHEN o.status = 'CONFIRMED' THEN 'SETTLED'
    WHEN o.status IN ('PREPARED', 'SENT') THEN o.status
    ELSE 'NONE' END
  FROM escrow_instruction o WHERE o.kind = ? AND o.id > ? ORDER BY o.id DESC LIMIT 1`;

const [when = '', armed = '', kind = ''] = (process.env.SERVE_AND_DIE ?? '').split(' ');
/** Recoveries are begun soon, and no machine is so slow that an answer of the provider is given up. */
const limits = { pollMs: 50, answerTimeoutMs: 300_000 };

/** Dies if this is the step. */
function reach(moment: 'BEFORE' | 'AFTER', step: string): void {
  if (moment === when && step === armed) process.kill(process.pid, 'SIGKILL');
}

/** Watches the commits of the service's database. */
function watchCommits(): void {
  const prepare = Sqlite.prototype.prepare;
  Sqlite.prototype.prepare = function watched(this: Sqlite.Database, source: string) {
    const statement = prepare.call(this, source);
    if (source !== 'COMMIT' || !this.name.endsWith('artseal.db')) return statement;
    const newest = prepare.call(this, 'SELECT coalesce(max(id), 0) FROM escrow_instruction');
    const last = (newest as Sqlite.Statement<[]>).pluck().get();
    const progress = (prepare.call(this, progressQuery) as Sqlite.Statement<unknown[]>).pluck();
    const run = statement.run.bind(statement) as () => Sqlite.RunResult;
    let before = 'NONE';
    statement.run = (() => {
      const now = String(progress.get(kind, last) ?? 'NONE');
      const step = now === before ? 'NONE' : now;
      before = now;
      reach('BEFORE', step);
      const result = run();
      reach('AFTER', step);
      return result;
    }) as typeof statement.run;
    return statement;
  } as typeof prepare;
}

/** The same provider, between two points. */
function watchCalls(provider: PaymentProvider): PaymentProvider {
  return {
    ...provider,
    instruct: async (instruction, signal) => {
      if (instruction.kind === kind) reach('BEFORE', 'CALL' satisfies Step);
      const payment = await provider.instruct(instruction, signal);
      if (instruction.kind === kind) reach('AFTER', 'CALL' satisfies Step);
      return payment;
    },
  };
}

watchCommits();
const config = readConfig(process.env);
const provider = watchCalls(
  await config.provider.open(config.providerSettings, { dataDir: config.dataDir, clock: systemClock }),
);
const app = await startApp(config, pino({ level: 'silent' }), {
  ...{ provider, limits },
  // Its commits are watched, which is done in the thread that makes them.
  isStoreInThisThread: true,
});
process.stdout.write(`artseal ready public=${app.publicUrl} internal=${app.internalUrl}\n`);
