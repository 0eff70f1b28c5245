/** Runs as a table. */
import type { Page, RunSummary } from '../../app/api.ts';
import type { Drawing } from './run.ts';
import { statusCell } from './status.ts';
import { renderTable } from './table.ts';
import { agoText, betweenText } from './time.ts';

/** One line per run, and how to see more. */
export function renderRunTable({ items, next_cursor }: Page<RunSummary>, drawing: Drawing): string {
  const { colors, now } = drawing;
  if (items.length === 0) return 'No runs.\n';
  const table = renderTable(
    items,
    [
      { title: 'run', cell: (run) => run.id },
      { title: 'status', cell: (run) => statusCell(run.status, colors) },
      { title: 'workflow', cell: workflowText },
      { title: 'tasks', cell: tasksText, isNumber: true },
      { title: 'created', cell: (run) => agoText(run.created_at, now), isNumber: true },
      { title: 'took', cell: (run) => betweenText(run.started_at, run.finished_at, now), isNumber: true },
      { title: 'note', cell: (run) => (run.status === 'SUCCESS' ? '' : (run.reason ?? '')) },
    ],
    drawing,
  );
  return next_cursor === null ? table : `${table}${colors.dim(`more with --cursor ${next_cursor}`)}\n`;
}

function workflowText({ workflow_name, workflow_version }: RunSummary): string {
  return workflow_name === null ? '(open)' : `${workflow_name}@${workflow_version}`;
}

/** Ended tasks of all. */
function tasksText({ counts }: RunSummary): string {
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const open = (counts.pending ?? 0) + (counts.moving ?? 0) + (counts.waiting ?? 0);
  return `${total - open}/${total}`;
}
