/** What a run keeps of its workflow so that moves need not look the definition up. Stored as JSON in `runs.settings`. */
import { parseDuration } from '../base/duration.ts';
import { type TraceContext, traceOfRun } from '../base/trace.ts';
import type { Workflow } from '../definition/workflow.ts';
import type { Budget } from '../domain/limits.ts';
import type { RunRow } from '../stores/rows.ts';

/** Rows of one run that may stand in `claimable` at once, so that a wide run cannot bury others (SPEC S4.3). */
const WINDOW_DEFAULT = 1_000;

/** The policies of one run. */
export interface RunSettings {
  readonly on_failure: 'fail_fast' | 'continue';
  /** Handed-out tasks at once; null is no bound of the run's own. */
  readonly max_parallel: number | null;
  readonly window: number;
  readonly timeout_ms: number | null;
  readonly has_outputs: boolean;
  /** The trace that the run was started in; without one it has its own. */
  readonly trace?: TraceContext;
  readonly budget: Budget | null;
}

/** The settings of an open run, which has no workflow. */
export const OPEN_RUN_SETTINGS: RunSettings = Object.freeze({
  on_failure: 'continue',
  max_parallel: null,
  window: WINDOW_DEFAULT,
  timeout_ms: null,
  has_outputs: false,
  budget: null,
});

/** The settings that a workflow asks for. */
export function settingsOf(workflow: Workflow): RunSettings {
  return {
    on_failure: workflow.on_failure ?? 'fail_fast',
    max_parallel: workflow.max_parallel ?? null,
    window: WINDOW_DEFAULT,
    timeout_ms: workflow.timeout === undefined ? null : parseDuration(workflow.timeout),
    has_outputs: Object.keys(workflow.outputs ?? {}).length > 0,
    budget: toBudget(workflow.budget),
  };
}

/** The place in a trace that the run's tasks go on from (SPEC S12.5). */
export function runTrace(run: Pick<RunRow, 'id' | 'settings'>): TraceContext {
  return runSettings(run).trace ?? traceOfRun(run.id);
}

function toBudget({
  tokens = null,
  cost_usd = null,
}: {
  tokens?: number | null | undefined;
  cost_usd?: number | null | undefined;
} = {}): Budget | null {
  return tokens === null && cost_usd === null ? null : { tokens, cost_usd };
}

/** Most runs have one of a few settings; beyond this many the memory starts afresh. */
const PARSED_MAX = 1_000;
const parsed = new Map<string, RunSettings>();

/** The settings of a run row, parsed once per text. */
export function runSettings({ settings: text }: Pick<RunRow, 'settings'>): RunSettings {
  let settings = parsed.get(text);
  if (settings === undefined) {
    if (parsed.size >= PARSED_MAX) parsed.clear();
    settings = Object.freeze(JSON.parse(text) as RunSettings);
    parsed.set(text, settings);
  }
  return settings;
}

/** A change of a budget. */
export interface BudgetChange {
  readonly tokens?: number | undefined;
  readonly cost_usd?: number | undefined;
}

/** Gives a run another budget; what is not named stays as it is. */
export function changeBudget(run: RunRow, change: BudgetChange): void {
  const settings = runSettings(run);
  const { tokens = settings.budget?.tokens ?? null, cost_usd = settings.budget?.cost_usd ?? null } = change;
  run.settings = JSON.stringify({ ...settings, budget: toBudget({ tokens, cost_usd }) });
}
