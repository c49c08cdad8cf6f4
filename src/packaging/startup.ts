import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

// Import this first: it makes what is imported later load in half the time.

// A user who can write to this folder can change the modules as well. If this process cannot write, it compiles as always.
const cacheFolder = join(import.meta.dirname, '..', '..', 'node_modules', '.cache', 'node');
enableCompileCache(cacheFolder);
// For threads and child processes.
process.env.NODE_COMPILE_CACHE ??= cacheFolder;

// An import of node:http reads all its exports, and Node then loads its HTTP client and WebSocket for these. Nobody uses them.
const http = process.getBuiltinModule('node:http');
for (const name of ['WebSocket', 'CloseEvent', 'MessageEvent']) Reflect.deleteProperty(http, name);
