import { runPart } from './part.ts';

await runPart(2);
