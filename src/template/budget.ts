/** Bounds that make a hostile template an error instead of a hang (SPEC S2.3). */

/** What one rendering may use. */
export interface Budget {
  /** Evaluation steps: every node visited, every loop turn, every element a filter touches. */
  readonly stepsMax: number;
  /** Characters produced: of the output, and, counted apart, of all strings and lists built on the way. */
  readonly outputCharsMax: number;
}

/** Enough for long honest prompts; a template that needs more is stopped. */
export const DEFAULT_BUDGET: Budget = Object.freeze({ stepsMax: 1_000_000, outputCharsMax: 4 * 1024 * 1024 });

/** Longest source that is compiled. */
export const SOURCE_CHARS_MAX = 1024 * 1024;
/** Deepest nesting of expressions and blocks, so that no tree can exhaust the stack. */
export const NESTING_MAX = 100;
