import { posix } from 'node:path';

/** A document of the project that is a page of the site. */
export interface Guide {
  /** Its path from the root of the project. */
  readonly file: string;
  /** Its name in the list of pages. */
  readonly title: string;
  /** The path of its URL. */
  readonly path: string;
  /** The language tag: the folder of a translation, or `en`. */
  readonly language: string;
}

/** The guides, in the order of the list of pages. A translation is in a folder such as `zh` beside the original. */
export const guides: readonly Guide[] = [
  guide('docs/platforms/README.md', 'Before you start'),
  guide('docs/platforms/signing.md', 'Signing'),
  guide('docs/platforms/zh/signing.md', '请求签名'),
  guide('docs/platforms/filing.md', 'Filing'),
  guide('docs/platforms/zh/filing.md', '作品备案'),
  guide('docs/platforms/escrow.md', 'Escrow'),
  guide('docs/platforms/zh/escrow.md', '托管交易'),
  guide('docs/platforms/webhooks.md', 'Events and webhooks'),
  guide('docs/platforms/errors.md', 'Errors, retries and limits'),
  guide('docs/platforms/zh/errors.md', '错误、重试和限制'),
  guide('docs/evidence.md', 'Check evidence'),
  guide('docs/glossary.md', 'Glossary'),
];

function guide(file: string, title: string): Guide {
  const path = `/${file.replace(/(\/README)?\.md$/, '')}`;
  return { file, title, path, language: /\/(zh)\//.exec(file)?.[1] ?? 'en' };
}

/** The file of a guide, or of the original if it is a translation. */
const originalOf = ({ file, language }: Guide): string => file.replace(`/${language}/`, '/');

/** Whether two guides are the same text in two languages. */
export function isTranslationOf(one: Guide, other: Guide): boolean {
  return one !== other && originalOf(one) === originalOf(other);
}

/** All guides for readers of a language: in that language, or in English. */
export function guidesFor(language: string): readonly Guide[] {
  const originals = guides.filter((guide) => guide.language === 'en');
  return originals.map(
    (original) =>
      guides.find((guide) => guide.language === language && isTranslationOf(guide, original)) ?? original,
  );
}

/** The Postman collection. */
export const collectionFile = 'docs/site/artseal.postman_collection.json';
/** The path of its URL. */
export const collectionPath = '/docs/artseal.postman_collection.json';

/** The paths of files that are on the site. */
const paths: ReadonlyMap<string, string> = new Map([
  ...guides.map(({ file, path }) => [file, path] as const),
  ['docs/try.html', '/docs/try'],
  ['docs/verify.html', '/verify'],
  [collectionFile, collectionPath],
  ['src/domain/reason-help.ts', '/docs/errors'],
  ['openapi.yaml', '/openapi.yaml'],
]);

/** Where a link in a document leads on the site; undefined if its target is not there. */
export function targetOf(file: string, link: string): string | undefined {
  if (/^[a-z]+:/.test(link)) return link;
  const [target = '', anchor] = link.split('#');
  const path = target === '' ? '' : paths.get(posix.join(posix.dirname(file), target));
  return path === undefined || anchor === undefined ? path : `${path}#${anchor}`;
}
