/** Whether traffic to an address is protected: it is https, or http on this machine. */
export function isSecure({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
}

/**
 * Whether this is the address of a page that a buyer can be sent to. Platforms put it into pages of their own, where
 * `javascript:` would be carried out and a name in front of the host (`https://bank.example@…`) would deceive.
 */
export function isPage(text: unknown): text is string {
  const url = typeof text === 'string' ? URL.parse(text) : null;
  return url !== null && isSecure(url) && url.username === '' && url.password === '';
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
}
