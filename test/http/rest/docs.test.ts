import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { brotliDecompressSync } from 'node:zlib';
import { parse } from 'yaml';
import { packagedFiles } from '../../../build/project.ts';
import { guides, targetOf } from '../../../src/http/rest/docs/guides.ts';
import { createLayout } from '../../../src/http/rest/docs/layout.ts';
import { renderMarkdown } from '../../../src/http/rest/docs/markdown.ts';
import { scalarFile, scalarVersion } from '../../../src/http/rest/docs/reference.ts';
import { createSite } from '../../../src/http/rest/docs/site.ts';
import { fileScope } from '../../support/file-scope.ts';
import { rawAnswer, rawExchange, rawRequest } from '../../support/raw-http.ts';
import { assertRejected } from '../../support/rejected.ts';
import { startService } from '../../support/service.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const openApi = parse(readFileSync(join(root, 'openapi.yaml'), 'utf8'), { maxAliasCount: -1 });
const service = await startService(fileScope);
const ask = (path: string, headers = {}, method = 'GET') =>
  rawAnswer(service.publicUrl, rawRequest(method, path, { Host: 'x', ...headers }));

/** An operation of the OpenAPI document. */
interface Operation {
  readonly operationId: string;
  readonly description?: string;
  readonly security?: readonly [];
}

/** Pages whose anchors exist only after their script has run. */
const applications = ['/docs/reference', '/docs/try'];

/** All pages that links lead to from /docs/, by path. Fails for a link that leads nowhere. */
async function walk(): Promise<ReadonlyMap<string, string>> {
  const pages = new Map<string, string>();
  const links = new Map([['/docs/', '/']]);
  for (const [link, from] of links) {
    const { pathname, hash } = new URL(link, `http://x${from}`);
    if (!pages.has(pathname)) {
      const { status, headers, text } = await ask(pathname);
      assert.equal(status, 200, `${from} has a link to ${pathname}`);
      const isPage = String(headers['content-type']).startsWith('text/html');
      pages.set(pathname, isPage ? text : '');
      if (isPage) {
        for (const [, href = ''] of text.matchAll(/<a [^>]*href="([^"]+)"/g)) {
          if (!/^[a-z]+:/.test(href))
            links.set(new URL(href, `http://x${pathname}`).href.slice('http://x'.length), pathname);
        }
      }
    }
    if (hash !== '' && !applications.includes(pathname)) {
      const id = decodeURIComponent(hash.slice(1));
      assert.ok(pages.get(pathname)?.includes(`id="${id}"`), `${from} has a link to ${link}`);
    }
  }
  return pages;
}

const pages = await walk();

test('every page and guide can be reached from /docs/, and every link and anchor exists', () => {
  const others = [
    '/docs/try',
    '/docs/reference',
    '/docs/errors',
    '/docs/webhooks',
    '/log/',
    '/verify',
    '/openapi.yaml',
  ];
  for (const path of others) assert.ok(pages.has(path), path);
  for (const { path, language } of guides) {
    assert.match(pages.get(path) ?? '', new RegExp(`^<!doctype html>\n<html lang="${language}">`), path);
  }
});

test('a guide links to its translation, and the list of pages names translations to their readers', () => {
  const [english, chinese] = ['/docs/platforms/escrow', '/docs/platforms/zh/escrow'].map(
    (path) => pages.get(path) ?? '',
  );
  assert.match(english ?? '', /<a href="\/docs\/platforms\/zh\/escrow" lang="zh" hreflang="zh">中文<\/a>/);
  assert.match(chinese ?? '', /<a href="\/docs\/platforms\/escrow" lang="en" hreflang="en">English<\/a>/);
  const listed = (text = '') =>
    Array.from(
      (/<nav id="pages".*?<\/nav>/s.exec(text)?.[0] ?? '').matchAll(
        /<a href="([^"]+)" lang="(\w+)"( aria-current="page")?/g,
      ),
      ([, path, language, current = '']) => `${path} ${language}${current === '' ? '' : ' current'}`,
    );
  assert.ok(listed(english).includes('/docs/platforms/signing en'));
  assert.ok(listed(english).includes('/docs/platforms/escrow en current'));
  assert.deepEqual(
    listed(english).filter((entry) => / zh/.test(entry)),
    [],
  );
  const inChinese = ['/docs/platforms/zh/signing zh', '/docs/platforms/zh/escrow zh current'];
  for (const entry of [...inChinese, '/docs/platforms/webhooks en', '/docs/glossary en'])
    assert.ok(listed(chinese).includes(entry), entry);
  assert.ok(!listed(chinese).some((entry) => entry.startsWith('/docs/platforms/escrow ')));
});

test('/ leads to the documentation; other methods at / and unknown pages get an error', async () => {
  const { answers } = await rawExchange(service.publicUrl, rawRequest('HEAD', '/', { Host: 'x' }), {
    head: true,
  });
  for (const { status, headers } of [await ask('/'), ...answers])
    assert.deepEqual([status, headers.location], [302, '/docs/']);
  const { status, headers } = await ask('/docs');
  assert.deepEqual([status, headers.location], [308, '/docs/']);
  for (const path of [
    '/docs/x',
    '/docs/glossary/',
    '/docs/scalar-1.0.0.js',
    '/docs/../openapi.yaml',
    '/docs/%65rrors',
  ])
    assertRejected(await ask(path), 404, 'NOT_FOUND', /\/docs\//);
  assertRejected(await ask('/docsx'), 401, 'AUTH_HEADER_MISSING');
});

test('/docs/webhooks shows the documented example of each event', async () => {
  const { text } = await ask('/docs/webhooks');
  const examples = Array.from(
    text.matchAll(/<h2 id="([^"]+)">.*?<code>(.*?)<\/code>/gs),
    ([, type, code = '']) => [type, JSON.parse(code.replaceAll('&quot;', '"'))],
  );
  const documented = Object.entries<{
    post: { requestBody: { content: Record<string, { example: object }> } };
  }>(openApi.webhooks).map(([type, { post }]) => [
    type,
    post.requestBody.content['application/json']?.example,
  ]);
  assert.deepEqual(examples, documented);
});

test('the reference has the operations of the OpenAPI document, with links to try those that are signed', async () => {
  const { headers, json } = await ask('/docs/reference.json');
  assert.equal(headers['content-type'], 'application/json');
  assert.equal(json.security ?? json.components.securitySchemes, undefined);
  assert.deepEqual(json.servers, [{ url: '/' }]);
  const operationsOf = ({ paths }: { readonly paths: Readonly<Record<string, object>> }): Operation[] =>
    Object.values(paths).flatMap((path) => Object.values(path));
  const tried = operationsOf(json).map(({ operationId, description }) => [
    operationId,
    /\(\/docs\/try#(\w+)\)\n$/.exec(description ?? '')?.[1],
  ]);
  assert.deepEqual(
    tried,
    operationsOf(openApi).map(({ operationId, security }) => [
      operationId,
      security === undefined ? operationId : undefined,
    ]),
  );
});

test('the script of the reference never changes under its name, and is compressed for clients that accept it', async () => {
  const path = `/docs/scalar-${scalarVersion}.js`;
  assert.ok((await ask('/docs/reference')).text.includes(`<script src="${path}"></script>`));
  const compressed = readFileSync(join(root, scalarFile));
  const script = brotliDecompressSync(compressed);
  for (const [accepted, isCompressed] of [
    ['identity', false],
    ['gzip, deflate, br, zstd', true],
    ['BR;q=0.5', true],
    ['br;q=0', false],
    ['br;q=0.000, identity', false],
    ['brotli', false],
    ['*', false],
  ] as const) {
    const response = await fetch(`${service.publicUrl}${path}`, {
      method: 'HEAD',
      headers: { 'Accept-Encoding': accepted },
    });
    const { headers } = response;
    assert.equal(headers.get('content-encoding'), isCompressed ? 'br' : null, accepted);
    assert.equal(headers.get('content-length'), String((isCompressed ? compressed : script).length));
    assert.equal(headers.get('cache-control'), 'public, max-age=31536000, immutable');
    assert.equal(headers.get('vary'), 'Accept-Encoding');
    assert.equal(headers.get('content-type'), 'text/javascript');
  }
  for (const encoding of ['identity', 'br']) {
    const response = await fetch(`${service.publicUrl}${path}`, { headers: { 'Accept-Encoding': encoding } });
    assert.ok(Buffer.from(await response.arrayBuffer()).equals(script), encoding);
  }
});

test('a page with scripts runs its own alone', async () => {
  const { headers } = await ask('/docs/reference');
  assert.match(
    String(headers['content-security-policy']),
    /^default-src 'none'; script-src 'self' 'sha256-[^']+'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
  );
});

test('what the pages are made of is a part of every package', () => {
  const needed = [
    ...guides.map(({ file }) => file),
    scalarFile,
    'docs/site/reference.json',
    'docs/site/style.css',
  ];
  for (const file of [...needed, 'docs/site/scalar-licenses.txt'])
    assert.ok(packagedFiles.includes(file), file);
  for (const file of packagedFiles) assert.ok(existsSync(join(root, file)), file);
});

test('links between documents become links of the site, and those to other files become text', async () => {
  const evidence = 'docs/evidence.md';
  for (const [link, target] of [
    ['platforms/zh/errors.md', '/docs/platforms/zh/errors'],
    ['platforms/README.md', '/docs/platforms'],
    ['#log-events', '#log-events'],
    ['glossary.md', '/docs/glossary'],
    ['glossary.md#tier', '/docs/glossary#tier'],
    ['verify.html', '/verify'],
    ['../openapi.yaml', '/openapi.yaml'],
    ['https://example.com/a#b', 'https://example.com/a#b'],
    ['../src/domain/reason-help.ts', '/docs/errors'],
    ['operate/README.md', undefined],
    ['../src/client/sign.ts#L1', undefined],
  ] as const)
    assert.equal(targetOf(evidence, link), target, link);
  const { html } = await renderMarkdown('[a `b`](x.md) and [c](d?e&f)', (link) =>
    link === 'x.md' ? undefined : link,
  );
  assert.equal(html, '<p>a <code>b</code> and <a href="d?e&amp;f">c</a></p>\n');
});

test('headings have the ids that GitHub gives them, and sections are those of the second level', async () => {
  const headings = [
    '# `artseal` & you',
    '## A `b`, c_d-e!',
    '### Deep',
    '## 签名 示例',
    '## A b c_d-e',
    '## <x>',
  ];
  const { html, sections } = await renderMarkdown(headings.join('\n\n'), () => undefined);
  assert.deepEqual(
    Array.from(html.matchAll(/<h(\d) id="([^"]*)">/g), ([, depth, id]) => `${depth} ${id}`),
    ['1 artseal--you', '2 a-b-c_d-e', '3 deep', '2 签名-示例', '2 a-b-c_d-e-1', '2 x'],
  );
  assert.deepEqual(
    sections.map(({ title }) => title),
    ['A b, c_d-e!', '签名 示例', 'A b c_d-e', '<x>'],
  );
});

test('a line break between Chinese words is no space', async () => {
  const markdown = '- 一行，\n  二行\n  （三）\n  [四](x)。\n- 五 six\n  七\n\n```\n八\n九\n```\n';
  const { html } = await renderMarkdown(markdown, (link) => link);
  const item = '<li>一行，二行（三）<a href="x">四</a>。</li>';
  assert.equal(
    html,
    `<ul>\n${item}\n<li>五 six\n七</li>\n</ul>\n<pre tabindex="0"><code>八\n九</code></pre>`,
  );
});

test('each file is read once, however many clients download it', async () => {
  const files: string[] = [];
  const read = (path: string) => {
    files.push(path);
    return readFileSync(join(root, path));
  };
  const request = { headers: { 'accept-encoding': 'br' } } as unknown as IncomingMessage;
  for (const [, respond] of createSite(read, createLayout(read))) {
    await respond(request);
    await respond(request);
  }
  assert.deepEqual(files.toSorted(), [...new Set(files)].sort());
});

test('code and tables can be scrolled with the keyboard, and code is escaped', async () => {
  const { html } = await renderMarkdown('```sh\na < b && "c"\n```\n\n| a |\n|---|\n| b |\n', () => undefined);
  assert.match(html, /^<pre tabindex="0"><code>a &lt; b &amp;&amp; &quot;c&quot;<\/code><\/pre>/);
  assert.match(html, /<div class="table" tabindex="0"><table>.*<\/table><\/div>\n$/s);
});
