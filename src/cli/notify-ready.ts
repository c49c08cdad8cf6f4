/** What systemd calls the socket that it listens on, where it waits for word from the process that it started. */
const socketVariable = 'NOTIFY_SOCKET';

/**
 * Says READY=1 to a systemd that started this process and waits for it (`Type=notify`). Its own program sends it, for Node
 * has no datagram sockets in the file system, so the unit needs `NotifyAccess=all`. Rejects if that program fails.
 */
export async function notifyReady(env: NodeJS.ProcessEnv): Promise<void> {
  if (env[socketVariable] === undefined) return;
  const { execFile } = await import('node:child_process');
  const { promisify } = await import('node:util');
  await promisify(execFile)('systemd-notify', ['--ready'], { env });
}
