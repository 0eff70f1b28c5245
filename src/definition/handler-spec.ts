/** What the definition needs to know of a handler: its name, its config, and how its tasks are decided. Running is not its matter. */
import type { z } from 'zod';
import type { ModelNeed } from '../domain/limits.ts';
import type { Path } from './problem.ts';

/** The describable half of a handler. The running half lives in `handlers/`. */
export interface HandlerSpec {
  readonly name: string;
  /** Other names that the node-list dialect uses for it. */
  readonly aliases?: readonly string[];
  readonly summary: string;
  /** Schema of `with` after rendering. */
  readonly config: z.ZodType;
  /** Keys of `with` whose text is run by a shell, where data must be quoted. */
  readonly shellKeys?: readonly string[];
  /** Key of `with` that names a script; its bundle is stored with the workflow and handed over as `bundle`. */
  readonly bundledKey?: string;
  /** What `with` names that is not there on this machine. It may be there where the task runs, so it is told as a warning. */
  readonly doubts?: (config: Readonly<Record<string, unknown>>) => readonly HandlerDoubt[];
  /** What settles the task when no worker is involved: the clock (`wait`) or a person (`approval`). */
  readonly settledBy?: 'timer' | 'person';
  /** What one attempt will ask of models at most, from its rendered config; for limits and budgets (SPEC S8). */
  reserve?(config: unknown, output: WantedOutput | null): readonly ModelNeed[];
}

/** What a task says about its output, as far as it matters for how much a model is asked. */
export interface WantedOutput {
  readonly schema?: unknown;
  readonly repair?: number | undefined;
}

/** Something that a task names and that is not there. */
export interface HandlerDoubt {
  /** Within `with`. */
  readonly path: Path;
  readonly message: string;
  readonly hint: string;
}

/** Handlers by name. */
export type HandlerCatalog = ReadonlyMap<string, HandlerSpec>;
