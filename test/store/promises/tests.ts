import { type TestContext, test } from 'node:test';
import type { StoredKey } from '../../../src/store/caller-commands.ts';
import {
  type Command,
  type CommandResult,
  type Kind,
  perform,
  type Result,
  type Store,
  type StoreRequest,
} from '../../../src/store/store.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import * as endpoints from './endpoints.ts';
import * as fixtures from './fixtures.ts';

type OfStore = (store: Store, ...rest: never[]) => unknown;

/** The functions of a module that begin with a store, without it. */
type Methods<Module> = {
  [Name in keyof Module as Module[Name] extends OfStore ? Name : never]: Module[Name] extends (
    store: Store,
    ...rest: infer Rest
  ) => infer Returned
    ? (...rest: Rest) => Returned
    : never;
};

/** A store in a folder of its test. The fixtures that begin with a store are its methods. */
export type TestStore = Store &
  Omit<Methods<typeof fixtures & typeof endpoints>, 'done'> & {
    perform<K extends Kind>(command: Command<K>): Promise<Result<K>>;
    done<K extends Kind>(
      request: StoreRequest<K>,
    ): Promise<Extract<CommandResult<K>, { readonly kind: 'DONE' }>>;
    readonly dataDir: string;
    /** Creates a store in another folder. */
    createAnother(): Promise<Store>;
    /** Opens its folder again, after it has closed. */
    openAgain(): Promise<TestStore>;
    /** Opens a copy of its folder as a crash would leave it: at this moment, or a copy of `crashCopy`. */
    openCrashed(copy?: string): Promise<TestStore>;
    /** Copies its folder as a crash at this moment would leave it. */
    crashCopy(): string;
  };

async function openTestStore(t: TestContext, engine: fixtures.StoreEngine, dataDir: string) {
  const store = await fixtures.openStore(t, engine, dataDir);
  const methods = Object.entries({ ...fixtures, ...endpoints, perform }).flatMap(([name, value]) =>
    typeof value === 'function'
      ? [[name, (...rest: never[]) => Reflect.apply(value, undefined, [store, ...rest])]]
      : [],
  );
  return Object.assign(store, Object.fromEntries(methods), {
    dataDir,
    createAnother: async () => {
      const another = await engine.open({ dataDir: temporaryFolder(t), ...fixtures.sandbox, opening: 'NEW' });
      t.after(() => another.close());
      return another;
    },
    openAgain: () => openTestStore(t, engine, dataDir),
    openCrashed: (copy?: string) =>
      openTestStore(t, engine, copy ?? fixtures.crashCopy(t, dataDir, engine.copyAsCrashed)),
    crashCopy: () => fixtures.crashCopy(t, dataDir, engine.copyAsCrashed),
  }) as TestStore;
}

/** A store with a platform. */
export type GalleryStore = TestStore & {
  /** The platform `gallery`. */
  readonly gallery: StoredKey;
};

/** Makes tests that each have an open store of an engine. */
export function storeTests(engine: fixtures.StoreEngine) {
  function storeTest(name: string, run: (store: TestStore, t: TestContext) => Promise<void>): void {
    test(name, async (t) => run(await openTestStore(t, engine, temporaryFolder(t)), t));
  }
  return {
    /** A test of an empty store. */
    storeTest,
    /** A test of a store with the platform `gallery`. */
    test: (name: string, run: (store: GalleryStore, t: TestContext) => Promise<void>) =>
      storeTest(name, async (store, t) =>
        run(Object.assign(store, { gallery: await store.addPlatform('gallery') }), t),
      ),
  };
}

/** Makes the tests of a part. */
export type StoreTests = ReturnType<typeof storeTests>;
