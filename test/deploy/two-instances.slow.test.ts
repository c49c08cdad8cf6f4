import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Agent, get } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { projectFolder } from '../support/artseal-command.ts';
import { makeAuthority } from '../support/certificates.ts';
import { eventually } from '../support/eventually.ts';
import { freeAddress } from '../support/free-address.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import { scrape } from '../support/metrics.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { serveWatched, type WatchedService } from '../support/watched-command.ts';
import { reverseProxies, startProxy } from './reverse-proxies.ts';

/** The longest wait for something that has to happen, in milliseconds. */
const timeoutMs = 60_000;
const clients = 8;
/** After so many failed checks the proxy takes an instance for not ready: `fall` of its configuration. */
const failedChecks = 2;
const failedCheck = { listener: 'public', operation: '/readyz', reason: 'UNAVAILABLE' };

/** Starts HAProxy with the servers of deploy/postgres/ha, which have these addresses. Returns its URL. */
function startHaproxy(t: TestContext, addresses: readonly string[], caFile: string): Promise<string> {
  const servers = readFileSync(join(projectFolder, 'deploy/postgres/ha/haproxy-servers.cfg'), 'utf8')
    .replace('/etc/ssl/artseal/authority.pem', caFile)
    .replaceAll(/app([12]):8443/g, (_, nth) => addresses[nth - 1] ?? '');
  const nowhere = '127.0.0.1:1';
  const replaced = `    server artseal ${nowhere}\n`;
  return startProxy(t, reverseProxies.haproxy, `http://${nowhere}`, (configuration) => {
    assert.ok(configuration.endsWith(replaced));
    return configuration.replace(replaced, servers);
  });
}

/** Calls on kept connections until the end of the test. Returns the failures so far. */
function callSteadily(t: TestContext, url: string): readonly string[] {
  const failures: string[] = [];
  const call = (agent: Agent): Promise<void> =>
    new Promise((resolve) => {
      const failed = (failure: unknown) => resolve(void failures.push(String(failure)));
      get(`${url}/version`, { agent }, (response) => {
        text(response).then((body) => {
          if (response.statusCode !== 200) failures.push(`${response.statusCode} ${body}`);
          resolve();
        }, failed);
      }).on('error', failed);
    });
  for (let client = 0; client < clients; client += 1) {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    void (async () => {
      while (!t.signal.aborted) await call(agent);
      agent.destroy();
    })();
  }
  return failures;
}

test('no call fails while one instance after the other is stopped, or none is ready', {
  skip: skipUnlessInstalled('openssl', 'haproxy'),
  timeout: 5 * timeoutMs,
}, async (t) => {
  const authority = makeAuthority(t);
  const serve = async (name: string) => {
    const { certificateFile, keyFile } = authority.issue(name, 2, [name]);
    const env = {
      ARTSEAL_DATA_DIR: temporaryFolder(t),
      ARTSEAL_PUBLIC_ADDR: await freeAddress(),
      ARTSEAL_PUBLIC_TLS_CERT: certificateFile,
      ARTSEAL_PUBLIC_TLS_KEY: keyFile,
      ARTSEAL_DRAIN_DELAY: '10',
    };
    return { env, address: env.ARTSEAL_PUBLIC_ADDR, service: await serveWatched(t, env) };
  };
  const [first, second] = [await serve('app1'), await serve('app2')];
  const url = await startHaproxy(t, [first.address, second.address], authority.certificateFile);
  const failures = callSteadily(t, url);
  const isCalled = (service: WatchedService) => {
    const before = service.logLines('"/version"').length;
    return eventually(
      'it is called',
      timeoutMs,
      () => service.logLines('"/version"').length > before + clients,
    );
  };
  const bothAreCalled = () => Promise.all([first, second].map(({ service }) => isCalled(service)));

  await bothAreCalled();
  for (const instance of [first, second]) {
    assert.equal(await instance.service.stop(), 0);
    // The next stop is never waited for.
    instance.service = await serveWatched(t, { ...instance.env, ARTSEAL_DRAIN_DELAY: '60' });
    await bothAreCalled();
  }
  assert.deepEqual(failures, []);

  for (const { service } of [first, second]) service.child.kill('SIGTERM');
  await eventually('the proxy finds none ready', timeoutMs, async () => {
    const checked = await Promise.all([first, second].map(({ service }) => scrape(service.metricsUrl)));
    return checked.every(({ value }) => (value('artseal_calls_total', failedCheck) ?? 0) > failedChecks);
  });
  await bothAreCalled();
  assert.deepEqual(failures, []);
});
