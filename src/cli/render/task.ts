/** A task run for people's eyes. */
import type { ArtifactView, AttemptView, TaskView } from '../../app/api.ts';
import { costText, type Drawing, renderFailure, taskName } from './run.ts';
import { statusCell, waitingText } from './status.ts';
import { renderTable } from './table.ts';
import { indent, manyLines, oneLine } from './text.ts';
import { agoText, betweenText, spanText } from './time.ts';
import { valueText } from './value.ts';

/** Everything about one task. */
export function renderTask(
  about: { readonly task: TaskView; readonly attempts: readonly AttemptView[]; readonly input: unknown },
  drawing: Drawing,
): string {
  const { task, attempts, input } = about;
  const { colors, now } = drawing;
  const status = statusCell(task.status, colors);
  const field = (name: string, value: string | null): string =>
    value === null || value === '' ? '' : `${colors.dim(`${name}:`.padEnd(10))} ${oneLine(value)}\n`;
  const block = (title: string, value: unknown): string =>
    value === null || value === undefined ? '' : `\n${title}:\n${indent(valueText(value), 2)}\n`;
  const later = task.not_before === null ? '' : `, ${agoText(task.not_before, now)}`;
  return [
    `${colors.bold(`task ${oneLine(taskName(task))}`)}\n`,
    `${colors.dim('status:'.padEnd(10))} ${(status.paint ?? String)(status.text)}${task.reason === null ? '' : ` (${task.reason.replaceAll('_', ' ')})`}\n`,
    field('run', task.run_id),
    field('task run', task.task_run_id),
    field(
      'waits for',
      task.waiting_for === null ? null : `${waitingText(task.waiting_for, task.limit)}${later}`,
    ),
    field('started', task.started_at),
    field('took', task.started_at === null ? null : betweenText(task.started_at, task.finished_at, now)),
    field('items', task.items === null ? null : itemsText(task.items)),
    field('progress', task.progress === null ? null : `${Math.round(task.progress * 100)}%`),
    field('message', task.message),
    task.question === null ? '' : `\nAsks:\n${indent(manyLines(task.question.message), 2)}\n`,
    task.error === null ? '' : `\nError: ${renderFailure(task.error, colors, task.attempt)}`,
    block('Input', input),
    task.output_ref === null
      ? block('Output', task.output)
      : `\nOutput: large; relay tasks artifacts ${task.task_run_id} --raw output\n`,
    renderCalls(attempts, drawing),
    attempts.length === 0 ? '' : `\nAttempts:\n${indent(renderAttempts(attempts, drawing), 2)}`,
  ].join('');
}

/** What the attempts asked of models, one line each. */
function renderCalls(attempts: readonly AttemptView[], drawing: Drawing): string {
  const asked = attempts.filter(({ usage }) => usage?.model !== undefined);
  if (asked.length === 0) return '';
  const count = (value: number | undefined): string => (value ?? 0).toLocaleString('en');
  const table = renderTable(
    asked,
    [
      { title: '#', cell: (each) => String(each.attempt), isNumber: true },
      { title: 'model', cell: ({ usage }) => usage?.model ?? '' },
      { title: 'calls', cell: ({ usage }) => count(callsOf(usage)), isNumber: true },
      { title: 'tokens in', cell: ({ usage }) => count(usage?.tokens_in), isNumber: true },
      { title: 'cached', cell: ({ usage }) => count(usage?.tokens_cached), isNumber: true },
      { title: 'tokens out', cell: ({ usage }) => count(usage?.tokens_out), isNumber: true },
      { title: 'cost', cell: ({ usage }) => costText(usage?.cost_usd ?? null), isNumber: true },
      { title: 'latency', cell: ({ usage }) => spanText(usage?.latency_ms ?? 0), isNumber: true },
      { title: 'finish', cell: ({ usage }) => usage?.finish ?? '' },
      { title: 'prompt', cell: ({ usage }) => (usage?.prompt_hash ?? '').slice(0, 12) },
    ],
    drawing,
  );
  return `\nModel calls:\n${indent(table, 2)}`;
}

function callsOf(usage: AttemptView['usage']): number {
  return Object.values(usage?.models ?? {}).reduce((sum, { calls }) => sum + calls, 0);
}

function itemsText({ total, done, failed }: NonNullable<TaskView['items']>): string {
  const [all, ended, bad] = [total, done, failed].map((count) => count.toLocaleString('en'));
  return `${ended} of ${all} done, ${bad} failed`;
}

function renderAttempts(attempts: readonly AttemptView[], drawing: Drawing): string {
  const { now } = drawing;
  return renderTable(
    attempts,
    [
      { title: '#', cell: (each) => String(each.attempt), isNumber: true },
      { title: 'outcome', cell: (each) => each.outcome },
      { title: 'started', cell: (each) => agoText(each.started_at, now) },
      { title: 'took', cell: (each) => betweenText(each.started_at, each.finished_at, now), isNumber: true },
      {
        title: 'error',
        cell: (each) => (each.error === null ? '' : `${each.error.code}: ${each.error.message}`),
      },
    ],
    drawing,
  );
}

/** Artifacts as a table. */
export function renderArtifactTable(artifacts: readonly ArtifactView[], drawing: Drawing): string {
  if (artifacts.length === 0) return 'No artifacts.\n';
  return renderTable(
    artifacts,
    [
      { title: 'name', cell: (each) => each.name },
      { title: 'kind', cell: (each) => each.kind },
      { title: 'type', cell: (each) => each.content_type },
      { title: 'bytes', cell: (each) => each.bytes.toLocaleString('en'), isNumber: true },
      { title: 'attempt', cell: (each) => String(each.attempt), isNumber: true },
      { title: 'created', cell: (each) => agoText(each.created_at, drawing.now) },
    ],
    drawing,
  );
}
