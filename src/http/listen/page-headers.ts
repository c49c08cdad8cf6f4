/** Bytes of a page of one file in which its policy is found. */
const headBytes = 4_096;

/** The headers of an HTML page with this Content-Security-Policy. */
export function pageHeaders(policy: string): Record<string, string> {
  return {
    'Content-Type': 'text/html; charset=utf-8',
    // Clickjacking: another site could frame the page and cover parts of it.
    'Content-Security-Policy': `${policy}; frame-ancestors 'none'`,
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    'Cache-Control': 'no-cache',
  };
}

/**
 * The headers of a page of one file. Such a page states its policy itself, so that it also applies to a copy on disk; only a header
 * can forbid framing. Throws if the page states no Content-Security-Policy.
 */
export function filePageHeaders(html: Uint8Array): Record<string, string> {
  const stated = /<meta http-equiv="Content-Security-Policy" content="([^"]+)"/;
  const policy = stated.exec(new TextDecoder().decode(html.subarray(0, headBytes)))?.[1];
  if (policy === undefined) throw new Error('A page of one file states no Content-Security-Policy.');
  return pageHeaders(policy);
}
