/** A bound on everything a user can hand in. The first group can be changed in the config file. */

/** Bounds of a workflow definition (config key `definition_limits`). */
export interface DefinitionLimits {
  readonly tasksMax: number;
  readonly taskConfigBytesMax: number;
  readonly fileBytesMax: number;
}

export const DEFINITION_LIMITS: DefinitionLimits = Object.freeze({
  tasksMax: 10_000,
  taskConfigBytesMax: 64 * 1024,
  fileBytesMax: 8 * 1024 * 1024,
});

/** The longest list that `for_each` may give (config key `map_items_max`). */
export const MAP_ITEMS_MAX = 100_000;

/** Deepest nesting of lists and maps in a definition. */
export const NESTING_DEPTH_MAX = 100;

/** Problems listed for one file; past this the report says how many more there are. */
export const PROBLEMS_MAX = 100;
