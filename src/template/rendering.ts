/**
 * The state of one rendering and its budget. Work is paid for before it is done, so a hostile template stops with an error
 * while it is still small. Two pools of characters: what is built on the way, and the text of the output.
 */
import { type Budget, DEFAULT_BUDGET } from './budget.ts';
import { errorAt } from './position.ts';
import type { Scope, TemplateError } from './template.ts';

/** Characters that a native string operation may look at for one step. */
const SCANNED_CHARS_PER_STEP = 64;

/** One rendering. Plain mutable fields, because every node touches them. */
export interface Rendering {
  readonly source: string;
  readonly scope: Scope;
  readonly budget: Budget;
  /** Variables of the template itself, by number; `undefined` is one that is not set. */
  readonly slots: unknown[];
  stepsLeft: number;
  charsLeft: number;
  /** Offset of the operation under way, for errors. */
  at: number;
  /** The text so far. */
  out: string;
}

/** A compiled node that gives a value. */
export type Evaluate = (rendering: Rendering) => unknown;

/** A compiled node that adds to the output or binds a name. */
export type Execute = (rendering: Rendering) => void;

/** A rendering that has spent nothing. */
export function startRendering(
  source: string,
  scope: Scope,
  options: { slotCount: number; budget: Partial<Budget> | undefined },
): Rendering {
  const budget = options.budget === undefined ? DEFAULT_BUDGET : { ...DEFAULT_BUDGET, ...options.budget };
  return {
    source,
    scope,
    budget,
    slots: options.slotCount === 0 ? [] : Array.from({ length: options.slotCount }, () => undefined),
    stepsLeft: budget.stepsMax,
    charsLeft: budget.outputCharsMax,
    at: 0,
    out: '',
  };
}

/** Pays for steps. */
export function spend(rendering: Rendering, steps: number): void {
  rendering.stepsLeft -= steps;
  // The negated form also stops at NaN.
  if (!(rendering.stepsLeft >= 0)) throw outOfSteps(rendering);
}

/** Pays for a native operation that reads this many characters. */
export function spendOnText(rendering: Rendering, chars: number): void {
  spend(rendering, 1 + Math.floor(chars / SCANNED_CHARS_PER_STEP));
}

/** Pays for a search of `needle` characters in `hay` characters, whose worst case is their product. */
export function spendOnSearch(rendering: Rendering, hay: number, needle: number): void {
  const windows = 1 + Math.floor(hay / SCANNED_CHARS_PER_STEP);
  spend(rendering, windows * (1 + Math.floor(needle / SCANNED_CHARS_PER_STEP)));
}

/** Pays for characters (or list elements) that are about to be built. */
export function charge(rendering: Rendering, chars: number): void {
  if (!(chars <= rendering.charsLeft)) throw outOfChars(rendering);
  rendering.charsLeft -= chars;
}

/** Adds to the output. */
export function write(rendering: Rendering, text: string): void {
  if (rendering.out.length + text.length > rendering.budget.outputCharsMax) throw outOfChars(rendering);
  rendering.out += text;
}

/** Stops with an error at the operation under way. */
export function fail(
  rendering: Rendering,
  kind: TemplateError['kind'],
  message: string,
  hint?: string,
): never {
  throw errorAt(rendering.source, rendering.at, { kind, message, hint });
}

/** The error of a rendering that has used up its steps. */
export function outOfSteps(rendering: Rendering): TemplateError {
  return errorAt(rendering.source, rendering.at, {
    kind: 'budget',
    message: `the template needs more than ${rendering.budget.stepsMax} steps`,
    hint: 'loop over less data, or do this work in a task',
  });
}

/** The error of a rendering that builds too much. */
export function outOfChars(rendering: Rendering): TemplateError {
  return errorAt(rendering.source, rendering.at, {
    kind: 'budget',
    message: `the template builds more than ${rendering.budget.outputCharsMax} characters`,
    hint: 'pass large data by reference, or do this work in a task',
  });
}
