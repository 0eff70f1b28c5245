/** The transition table for readers and for SQL: text made from `transitions.ts`, so that no copy can drift. */
import { LEASED_TASK_STATUSES, TASK_STATUSES, type TaskStatus, TERMINAL_TASK_STATUSES } from './states.ts';
import { MOVES, type Move, TRANSITIONS, type Transition } from './transitions.ts';

/** The page `docs/reference/transitions.md`: a Mermaid diagram, then the whole table. */
export function renderTransitionDiagram(): string {
  return [
    '<!-- Generated from src/domain/transitions.ts by `npm run generate`; do not edit. -->',
    '# Task run transitions',
    '',
    'Every way a task run can move. A pair that is not here is refused. The numbers on the arrows are rows of the table below.',
    '',
    '```mermaid',
    ...diagramLines(),
    '```',
    '',
    'Terminal states are left only by a recorded operator action (the arrows back to `PENDING`).',
    '',
    '| # | from | trigger | guard | to | events | spends | fence | operator only |',
    '|---|---|---|---|---|---|---|---|---|',
    ...TRANSITIONS.map(tableLine),
    '',
  ].join('\n');
}

/** SQL text for both dialects: the two checks of `task_runs`, and the legal pairs as a values list. */
export function renderSqlChecks(): string {
  const leaseColumns = ['lease_id', 'leased_by', 'lease_expires_at'];
  const all = (test: string): string => leaseColumns.map((column) => `${column} ${test}`).join(' and ');
  return [
    '-- Generated from src/domain/transitions.ts; do not edit.',
    '-- The statuses of task_runs.',
    `check (status in (${sqlList(TASK_STATUSES)}))`,
    '',
    '-- The three lease columns of task_runs are set exactly while a worker holds the task.',
    'check (',
    `  case when status in (${sqlList(LEASED_TASK_STATUSES)})`,
    `    then ${all('is not null')}`,
    `    else ${all('is null')}`,
    '  end',
    ')',
    '',
    '-- The legal moves (from, to); out of a terminal status only by a recorded operator action.',
    'values',
    MOVES.map((move) => `  ('${move.from}', '${move.to}')`).join(',\n'),
    '',
  ].join('\n');
}

function diagramLines(): string[] {
  return [
    'stateDiagram-v2',
    ...TASK_STATUSES.flatMap(birthLines),
    ...MOVES.map((move) => `  ${move.from} --> ${move.to}: ${rowNumbers(move)}`),
    ...TERMINAL_TASK_STATUSES.map((status) => `  ${status} --> [*]`),
  ];
}

function birthLines(status: TaskStatus): string[] {
  const rows = TRANSITIONS.filter((row) => row.from === 'none' && row.to.includes(status));
  return rows.length === 0 ? [] : [`  [*] --> ${status}: ${rows.map((row) => row.number).join(', ')}`];
}

function rowNumbers(move: Move): string {
  return TRANSITIONS.filter(
    (row) =>
      row.from !== 'none' && row.from.includes(move.from) && row.to !== 'same' && row.to.includes(move.to),
  )
    .map((row) => row.number)
    .join(', ');
}

function tableLine(row: Transition): string {
  const cells = [
    String(row.number),
    row.from === 'none' ? '–' : statusCell(row.from),
    `\`${row.trigger}\``,
    row.guard.replaceAll('|', '\\|'),
    row.to === 'same' ? 'unchanged' : statusCell(row.to),
    row.events.join(', '),
    row.spends === 'nothing' ? '–' : row.spends,
    row.needsFence ? 'yes' : '–',
    row.operatorOnly ? 'yes' : '–',
  ];
  return `| ${cells.join(' | ')} |`;
}

function statusCell(statuses: readonly TaskStatus[]): string {
  return statuses.length === TASK_STATUSES.length ? 'any' : statuses.join(', ');
}

function sqlList(words: readonly string[]): string {
  return words.map((word) => `'${word}'`).join(', ');
}
