/** Bounds that make a hostile template an error instead of a hang (SPEC S2.3). */

/** What one rendering may use. */
export interface Budget {
  /** Evaluation steps: every node visited, every loop turn, every element a filter touches. */
  readonly stepsMax: number;
  /** Characters produced: of the output, and of any string or list built on the way. */
  readonly outputCharsMax: number;
}

export const DEFAULT_BUDGET: Budget = Object.freeze({ stepsMax: 1_000_000, outputCharsMax: 4 * 1024 * 1024 });

/** Bounds at compile time. */
export const SOURCE_CHARS_MAX = 1024 * 1024;
export const NESTING_MAX = 100;
