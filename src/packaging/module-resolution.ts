import { registerHooks } from 'node:module';

/**
 * Resolves the relative imports of drizzle-orm as ES modules. Node 26 would parse its package.json, 178 kB of exports,
 * for each of 112 modules, which takes longer than the rest of a command's start. Import this before drizzle-orm.
 */
registerHooks({
  resolve: (specifier, context, nextResolve) => {
    const { parentURL } = context;
    if (!specifier.startsWith('.') || !parentURL?.includes('/node_modules/drizzle-orm/')) {
      return nextResolve(specifier, context);
    }
    return { url: new URL(specifier, parentURL).href, format: 'module', shortCircuit: true };
  },
});
