import { startLoad } from './generator.ts';
import { ownProject, startService } from './servers.ts';

/** How many requests are signed at a time, and for how many minutes they are sent. */
export interface MemoryPlan {
  readonly requests: number;
  readonly minutes: number;
}

const connections = 64;
/** The part of the service's capacity that is used. */
const capacityShare = 0.8;

/** Measures the memory of the service over minutes of signed calls about provenance at a fixed rate. */
export async function measureMemory(
  { requests, minutes }: MemoryPlan,
  dir: string,
  print: (text: string) => void,
): Promise<void> {
  const service = await startService('service', ownProject, dir);
  const filed = { year: new Date().getUTCFullYear(), last: requests };
  const prepare = async (load: ReturnType<typeof startLoad>) => {
    await load.prepare({ workload: 'provenance', requests, filed, credentials: [service.credentials] });
    return load;
  };
  const sending = startLoad();
  await sending.file(service, requests);
  const full = await (await prepare(sending)).send(service, 'public', connections);
  const perS = Math.round((capacityShare * full.requests) / full.seconds);
  print(`\nprovenance: ${perS} requests/s offered for ${minutes} minutes, ${connections} connections`);
  // While one sends, the other signs, so that the service has no pause.
  let [next, other] = [prepare(sending), startLoad()];
  const startedMs = performance.now();
  const isOver = (afterMinutes: number) => performance.now() - startedMs >= afterMinutes * 60_000;
  let p999Ms = 0;
  for (let minute = Math.min(1, minutes); minute <= minutes; ) {
    const load = await next;
    next = prepare(other);
    other = load;
    p999Ms = Math.max(p999Ms, (await load.send(service, 'public', connections, perS)).p999Ms);
    if (!isOver(minute)) continue;
    const { now, peak } = service.residentMb();
    const memory = `resident memory ${Math.round(now)} MB, peak ${Math.round(peak)} MB`;
    print(`  ${minute} min: ${memory}, highest p99.9 ${p999Ms.toFixed(0)} ms`);
    minute += 1;
    p999Ms = 0;
  }
  await next;
}
