/** A run for people's eyes: how it ended, what came out, what went wrong and what to type next. */
import type { ApprovalView, RunView, TaskView } from '../../app/api.ts';
import { ADVICE, type TaskFailure } from '../../domain/failure.ts';
import type { Colors, Output } from '../io.ts';
import { paintStatus, statusCell, symbolOf } from './status.ts';
import { renderTable } from './table.ts';
import { indent, manyLines, oneLine, plural } from './text.ts';
import { agoText, betweenText, spanText } from './time.ts';
import { renderValues } from './value.ts';

/** What drawing needs beside the data. */
export interface Drawing {
  readonly colors: Colors;
  readonly output: Output;
  readonly now: number;
}

const ENDED: Readonly<Record<string, string>> = {
  SUCCESS: 'succeeded',
  FAILED: 'failed',
  CANCELLED: 'was cancelled',
  WAITING: 'waits for a person',
};
const FAILURES_SHOWN = 10;

/** The last words about a run that was followed. */
export function renderSummary(run: RunView, drawing: Drawing): string {
  const { colors, now } = drawing;
  const paint = paintStatus(run.status, colors);
  const name = colors.bold(oneLine(run.workflow_name ?? run.id));
  const took = betweenText(run.created_at, run.finished_at, now);
  const total = Object.values(run.counts).reduce((sum, count) => sum + count, 0);
  const head = `${paint(symbolOf(run.status))} ${name} ${ENDED[run.status] ?? `is ${run.status}`} after ${took} · ${plural(total, 'task')}${usageText(run)}\n`;
  return `\n${head}${renderOutputs(run, colors)}${renderFailures(run, colors)}`;
}

function usageText({ usage }: RunView): string {
  const tokens = (usage?.tokens_in ?? 0) + (usage?.tokens_out ?? 0);
  if (tokens === 0) return '';
  const { cost_usd = 0 } = usage ?? {};
  const cost = cost_usd === 0 ? '' : cost_usd === null ? ', cost unknown' : `, ${costText(cost_usd)}`;
  return ` · ${plural(tokens, 'token')}${cost}`;
}

/** What each model was asked and cost; nothing when no model was. */
function renderModelUses(usage: RunView['usage'], drawing: Drawing): string {
  const uses = Object.entries(usage?.models ?? {});
  if (uses.length === 0) return '';
  const count = (value: number): string => value.toLocaleString('en');
  const table = renderTable(
    uses,
    [
      { title: 'model', cell: ([model]) => model },
      { title: 'calls', cell: ([, use]) => count(use.calls), isNumber: true },
      { title: 'tokens in', cell: ([, use]) => count(use.tokens_in), isNumber: true },
      { title: 'cached', cell: ([, use]) => count(use.tokens_cached), isNumber: true },
      { title: 'tokens out', cell: ([, use]) => count(use.tokens_out), isNumber: true },
      { title: 'cost', cell: ([, use]) => costText(use.cost_usd), isNumber: true },
    ],
    drawing,
  );
  return `\nModels:\n${indent(table, 2)}`;
}

/** A cost in dollars; null is a price that nobody has told. */
export function costText(cost: number | null): string {
  return cost === null ? 'unknown' : `$${cost.toFixed(cost > 0 && cost < 0.0001 ? 8 : 4)}`;
}

function renderOutputs({ outputs }: RunView, colors: Colors): string {
  const values = (outputs ?? {}) as Readonly<Record<string, unknown>>;
  if (Object.keys(values).length === 0) return '';
  return `\nOutputs:\n${renderValues(values, colors)}`;
}

function renderFailures(run: RunView, colors: Colors): string {
  const all = run.tasks.filter(({ status }) => status === 'FAILED');
  // A map says what its items say better.
  const items = new Set(all.filter(({ map_index }) => map_index !== null).map(({ task_id }) => task_id));
  const failed = all.filter(({ task_id, map_index }) => map_index !== null || !items.has(task_id));
  const blocks = failed.slice(0, FAILURES_SHOWN).map((task) => renderFailedTask(task, colors));
  if (failed.length > FAILURES_SHOWN)
    blocks.push(`  … and ${failed.length - FAILURES_SHOWN} more: relay dead-letters list --run ${run.id}\n`);
  const own = run.status === 'FAILED' ? renderRunError(run, colors) : '';
  return blocks.length + own.length === 0 ? '' : `\nWhat went wrong:\n${own}${blocks.join('')}`;
}

function renderRunError({ error, reason }: RunView, colors: Colors): string {
  const failure = error as TaskFailure | null;
  if (failure === null) return reason === null || reason === 'task_failed' ? '' : `  ${reason}\n`;
  return `  ${colors.red('✗')} the run: ${manyLines(failure.message)}\n    ${colors.dim(ADVICE[failure.class])}\n`;
}

function renderFailedTask(task: TaskView, colors: Colors): string {
  const failure = task.error;
  const head = `  ${colors.red('✗')} ${colors.bold(oneLine(taskName(task)))}`;
  if (failure === null) return `${head}  ${task.reason ?? ''}\n`;
  return `${head}  ${renderFailure(failure, colors, task.attempt)}`;
}

/** A failure: class, code, message, advice. */
export function renderFailure(failure: TaskFailure, colors: Colors, attempt: number): string {
  const tries = attempt > 1 ? `, attempt ${attempt}` : '';
  const what = colors.dim(`${failure.class} ${failure.code}${tries}`);
  const advice = failure.hint ?? ADVICE[failure.class];
  return `${what}\n${indent(manyLines(failure.message), 4)}\n    ${colors.blue('=')} ${oneLine(advice)}\n`;
}

/** What to type next about a run, one command a line. */
export function renderNext(
  run: RunView,
  about: {
    readonly flags: string;
    readonly questions: readonly ApprovalView[];
    readonly isInterrupted: boolean;
  },
): string {
  const lines = nextCommands(run, about).map(
    ([command, what]) => [`${command}${about.flags}`, what] as const,
  );
  const width = Math.max(0, ...lines.map(([command]) => command.length));
  if (lines.length === 0) return '';
  return `\nNext:\n${lines.map(([command, what]) => `  ${command.padEnd(width)}   ${what}\n`).join('')}`;
}

function nextCommands(
  run: RunView,
  about: { readonly questions: readonly ApprovalView[]; readonly isInterrupted: boolean },
): readonly (readonly [string, string])[] {
  const { id } = run;
  if (run.status === 'SUCCESS') return [[`relay runs show ${id}`, 'tasks, times and outputs']];
  if (run.status === 'CANCELLED') return [[`relay runs retry ${id} --follow`, 'run what is missing']];
  if (run.reason === 'budget')
    return [[`relay runs retry ${id} --budget tokens=N --follow`, 'go on with a larger budget']];
  if (run.status === 'FAILED') {
    const failed = run.tasks.find(
      ({ status, error, items }) => status === 'FAILED' && error !== null && items === null,
    );
    const logs =
      failed === undefined
        ? []
        : [[`relay tasks logs ${id} ${taskArgument(failed)}`, 'what it said'] as const];
    return [...logs, [`relay runs retry ${id} --follow`, 'run what did not succeed again']];
  }
  if (about.isInterrupted) return [[`relay resume ${id}`, 'carry on']];
  if (run.reason === 'paused')
    return [
      [`relay runs resume ${id}`, 'end the pause'],
      [`relay resume ${id}`, 'carry on'],
    ];
  const answers = about.questions.flatMap((question) => {
    const { schema } = question;
    const task = taskArgument(question);
    const form = schema === null ? '' : " --answer '{…}'";
    return [
      [`relay approvals approve ${id} ${task}${form}`, 'say yes'] as const,
      [`relay approvals reject ${id} ${task} --reason …`, 'say no'] as const,
    ];
  });
  return [...answers, [`relay resume ${id}`, 'then carry on']];
}

/** Everything about a run. */
export function renderRun(run: RunView, drawing: Drawing): string {
  const { colors, now } = drawing;
  const field = (name: string, value: string | null): string =>
    value === null || value === '' ? '' : `${colors.dim(`${name}:`.padEnd(10))} ${oneLine(value)}\n`;
  const workflow =
    run.workflow_name === null ? 'none (open run)' : `${run.workflow_name} version ${run.workflow_version}`;
  const labels = Object.entries(run.labels).map(([name, value]) => `${name}=${value}`);
  const status = statusCell(run.status, colors);
  return [
    `${colors.bold(`run ${run.id}`)}\n`,
    `${colors.dim('status:'.padEnd(10))} ${(status.paint ?? String)(status.text)}${run.reason === null ? '' : ` (${run.reason})`}\n`,
    field('workflow', workflow),
    field('created', `${run.created_at} (${agoText(run.created_at, now)})`),
    field('took', run.started_at === null ? null : betweenText(run.started_at, run.finished_at, now)),
    field('labels', labels.join(', ')),
    field('priority', run.priority === 0 ? null : String(run.priority)),
    field('clone of', run.cloned_from),
    field('usage', usageText(run).replace(/^ · /, '')),
    renderModelUses(run.usage, drawing),
    Object.keys((run.inputs ?? {}) as object).length === 0
      ? ''
      : `\nInputs:\n${renderValues(run.inputs as Record<string, unknown>, colors)}`,
    `\n${renderTaskTable(
      run.tasks.filter(({ map_index }) => map_index === null),
      drawing,
    )}`,
    renderOutputs(run, colors),
    renderFailures(run, colors),
  ].join('');
}

/** Tasks as a table. */
function renderTaskTable(tasks: readonly TaskView[], drawing: Drawing): string {
  const { colors, now } = drawing;
  return renderTable(
    tasks,
    [
      { title: 'task', cell: taskName },
      { title: 'status', cell: (task) => statusCell(task.status, colors) },
      { title: 'attempt', cell: (task) => (task.attempt === 0 ? '' : String(task.attempt)), isNumber: true },
      { title: 'took', cell: (task) => betweenText(task.started_at, task.finished_at, now), isNumber: true },
      { title: 'task run', cell: (task) => task.task_run_id },
      { title: 'note', cell: taskNote },
    ],
    drawing,
  );
}

/** The name of a task as it can be typed into a shell. */
export function taskArgument(task: Pick<TaskView, 'task_id' | 'map_index'>): string {
  const name = taskName(task);
  return task.map_index === null ? name : `'${name}'`;
}

/** The name of a task, with its place in a list when it has one. */
export function taskName({ task_id, map_index }: Pick<TaskView, 'task_id' | 'map_index'>): string {
  return map_index === null ? task_id : `${task_id}[${map_index}]`;
}

function taskNote(task: TaskView): string {
  const { items } = task;
  if (items !== null) {
    const failed = items.failed === 0 ? '' : `, ${items.failed.toLocaleString('en')} failed`;
    return `${items.done.toLocaleString('en')} of ${plural(items.total, 'item')} done${failed}`;
  }
  if (task.error !== null) return `${task.error.code}: ${task.error.message}`;
  if (task.question !== null) return task.question.message;
  if (task.waiting_for !== null)
    return `waits for ${task.waiting_for}${task.limit === null ? '' : ` ${task.limit}`}`;
  return (task.reason ?? '').replaceAll('_', ' ');
}

/** How a run went, as bars on one scale of time. */
export function renderTimeline(run: RunView, drawing: Drawing): string {
  const { colors, now } = drawing;
  const start = Date.parse(run.created_at);
  const end = run.finished_at === null ? now : Date.parse(run.finished_at);
  const columns = 40;
  const at = (iso: string): number =>
    Math.min(
      columns,
      Math.max(0, Math.round(((Date.parse(iso) - start) / Math.max(1, end - start)) * columns)),
    );
  const worked = run.tasks.filter(
    (task) => task.map_index === null && (task.started_at !== null || task.finished_at !== null),
  );
  const width = Math.max(4, ...worked.map((task) => taskName(task).length));
  const lines = worked.map((task) => {
    const from = at(task.started_at ?? task.finished_at ?? run.created_at);
    const to = Math.max(from + 1, at(task.finished_at ?? new Date(now).toISOString()));
    const bar = `${' '.repeat(from)}${'█'.repeat(to - from)}`.padEnd(columns + 1);
    const took = task.started_at === null ? '' : betweenText(task.started_at, task.finished_at, now);
    const tries = task.attempt > 1 ? ` ×${task.attempt}` : '';
    const paint = paintStatus(task.status, colors);
    return `  ${taskName(task).padEnd(width)} ${paint(bar)} ${took}${tries}\n`;
  });
  return `Timeline (${spanText(end - start)}):\n${lines.join('')}`;
}
