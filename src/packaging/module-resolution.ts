import { registerHooks } from 'node:module';

/**
 * Tells Node that the modules of drizzle-orm which import each other are ES modules, as its package.json says. Node 26
 * parses that file, 178 kB of exports, anew for each of the 112 modules that are loaded, which takes longer than all
 * else that a command does to start. To be imported before anything that imports drizzle-orm.
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
