import type { BuildInfo } from '../../program/build-info.ts';
import type { RegistryFigures } from '../../store/figure-commands.ts';
import type { StoreFigures } from '../../store/store.ts';
import type { CallFigure, Door } from '../call-figures.ts';
import type { InstitutionFigure } from './institution-figures.ts';
import type { ProcessFigures } from './process-figures.ts';

/** All figures at one moment. */
export interface Snapshot {
  /** Unix milliseconds. */
  readonly nowMs: number;
  readonly build: BuildInfo;
  /** Whether each part of readiness is as it should be. */
  readonly readiness: Readonly<Record<string, boolean>>;
  /** Until when the certificates of the doors that speak TLS are good, Unix milliseconds. */
  readonly certificateEnds: ReadonlyMap<Door, number>;
  readonly calls: readonly CallFigure[];
  readonly institution: readonly InstitutionFigure[];
  readonly process: ProcessFigures;
  /** Undefined if the store did not tell. */
  readonly store: StoreFigures | undefined;
  readonly registry: RegistryFigures | undefined;
}
