import { registerHooks } from 'node:module';

const root = new URL('../../', import.meta.url).href;

/** Packages of ES modules with many files. */
const packages =
  /\/node_modules\/(?:drizzle-orm|@bufbuild\/protobuf|@connectrpc\/connect(?:-node)?|@noble\/(?:curves|hashes))\//;

/** What a specifier of a package leads to in the modules of this project. */
const resolved = new Map<string, ReturnType<Parameters<typeof registerHooks>[0]['resolve'] & {}>>();

/**
 * Resolves imports of this project, and relative imports of some packages, without a look at the disk. Node would look for each
 * file and for its package.json, and parse that of drizzle-orm, 178 kB, for each import. Import this before them.
 */
registerHooks({
  resolve: (specifier, context, nextResolve) => {
    const { parentURL = '', conditions } = context;
    const isOwn = parentURL.startsWith(root) && !parentURL.startsWith(`${root}node_modules/`);
    if (!conditions.includes('import') || !(isOwn || packages.test(parentURL)))
      return nextResolve(specifier, context);
    if (/^\..*\.[jt]s$/.test(specifier)) {
      const format = specifier.endsWith('.ts') ? 'module-typescript' : 'module';
      return { url: new URL(specifier, parentURL).href, format, shortCircuit: true };
    }
    if (!isOwn || specifier.startsWith('.')) return nextResolve(specifier, context);
    const known = resolved.get(specifier) ?? { ...nextResolve(specifier, context), shortCircuit: true };
    resolved.set(specifier, known);
    return known;
  },
});
