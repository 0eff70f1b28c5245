/** The picture of a running run: a header and a line per task, finished parts folded when the terminal is too small. */
import { isTerminal, type TaskStatus } from '../../domain/states.ts';
import { isMapping, isWorking, type RunProgress, type TaskProgress } from '../follow/run-progress.ts';
import type { Colors } from '../io.ts';
import { paintStatus, symbolOf } from './status.ts';
import { cut, oneLine, pad, widthOf } from './text.ts';
import { spanText } from './time.ts';

/** What a picture is drawn for. */
export interface Canvas {
  readonly columns: number;
  readonly rows: number;
  readonly now: number;
  /** Counts pictures, for what turns. */
  readonly frame: number;
  readonly colors: Colors;
  /** A last line that says what can be done. */
  readonly footer: string;
}

const SPINNER = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const NAME_COLUMNS_MAX = 36;
const BAR_COLUMNS = 16;
/** Lines that are not tasks: two of header, folded head and tail, footer, and the one the cursor stands on. */
const OTHER_ROWS = 6;

/** The lines of the picture; none is longer than the canvas is wide. */
export function renderLive(progress: RunProgress, canvas: Canvas): readonly string[] {
  const { shown, folded } = fold(progress, Math.max(1, canvas.rows - OTHER_ROWS));
  const width = Math.min(NAME_COLUMNS_MAX, Math.max(4, ...shown.map(({ task_id }) => widthOf(task_id))));
  const triesWidth = Math.max(0, ...shown.map((task) => tries(task).length));
  const lines = [...header(progress, canvas)];
  if (folded.done > 0) lines.push(canvas.colors.green(`  ✓ ${folded.done.toLocaleString('en')} done`));
  for (const task of shown) lines.push(taskLine(task, { ...canvas, width, triesWidth }));
  if (folded.ahead > 0) lines.push(canvas.colors.dim(`  · ${folded.ahead.toLocaleString('en')} to come`));
  if (canvas.footer !== '') lines.push(canvas.colors.dim(cut(canvas.footer, canvas.columns - 1)));
  return lines;
}

/** The tasks that the picture shows when it cannot show all: what moves or went wrong, then what ended last, then what comes next. */
function fold(
  { tasks, status }: RunProgress,
  room: number,
): { readonly shown: readonly TaskProgress[]; readonly folded: { done: number; ahead: number } } {
  if (tasks.length <= room) return { shown: tasks, folded: { done: 0, ahead: 0 } };
  const ranked = tasks.map((task, order) => ({ task, order, rank: rankOf(task) }));
  ranked.sort((a, b) => a.rank - b.rank || laterFirst(a.task, b.task) || a.order - b.order);
  // The last picture of a large run keeps what went wrong; the rest has been seen.
  const last = isTerminal(status) ? ranked.filter(({ rank }) => rank < 2).length : room;
  const kept = ranked.slice(0, Math.min(room, last)).sort((a, b) => a.order - b.order);
  const rest = ranked.slice(kept.length);
  const done = rest.filter(({ task }) => isTerminal(task.status)).length;
  return { shown: kept.map(({ task }) => task), folded: { done, ahead: rest.length - done } };
}

function rankOf(task: TaskProgress): number {
  const { status, notBefore } = task;
  if (isMapping(task) || isWorking(status) || status === 'BLOCKED' || status === 'WAITING_INPUT') return 0;
  if (status === 'FAILED' || (status === 'QUEUED' && notBefore !== null)) return 1;
  return isTerminal(status) ? 2 : 3;
}

function laterFirst(a: TaskProgress, b: TaskProgress): number {
  return (b.finishedAt ?? 0) - (a.finishedAt ?? 0);
}

const COUNTED: readonly (readonly [name: string, statuses: readonly TaskStatus[]])[] = [
  ['done', ['SUCCESS']],
  ['running', ['LEASED', 'RUNNING']],
  ['waiting for you', ['BLOCKED', 'WAITING_INPUT']],
  ['failed', ['FAILED']],
  ['skipped', ['SKIPPED']],
  ['cancelled', ['CANCELLED']],
  ['to come', ['PENDING', 'READY', 'QUEUED']],
];

function header(progress: RunProgress, { colors, now, columns }: Canvas): readonly string[] {
  const counts = COUNTED.flatMap(([name, statuses]) => {
    const count = progress.count(...statuses);
    return count === 0 ? [] : [`${count.toLocaleString('en')} ${name}`];
  });
  const name = cut(oneLine(progress.run.workflow_name ?? 'open run'), columns - 1);
  const id = cut(`  ${progress.run.id}`, columns - 1 - widthOf(name));
  const state = progress.isPaused ? ['paused'] : progress.isCancelling ? ['cancelling'] : [];
  const facts = [spanText(now - progress.startedAt), ...state, ...counts].join(' · ');
  return [`${colors.bold(name)}${colors.dim(id)}`, colors.dim(cut(`  ${facts}`, columns - 1))];
}

function taskLine(
  task: TaskProgress,
  canvas: Canvas & { readonly width: number; readonly triesWidth: number },
): string {
  const { colors, width, columns, now } = canvas;
  const paint = paintStatus(task.status, colors);
  const name = pad(cut(oneLine(task.task_id), width), width);
  const time = pad(elapsed(task, now), 7);
  const attempt = pad(tries(task), canvas.triesWidth);
  const share = shareOf(task);
  const bar = share === null ? '' : ` ${progressBar(share)}`;
  const fixed = `  ${symbol(task, canvas)} ${name}  ${time}${attempt}${bar}`;
  const note = cut(noteOf(task, now), columns - 1 - widthOf(fixed) - 2);
  const head = `  ${paint(symbol(task, canvas))} ${isWaiting(task) ? colors.dim(name) : name}`;
  const middle = `  ${colors.dim(time)}${colors.yellow(attempt)}${colors.cyan(bar)}`;
  const shownNote = note === '' ? '' : `  ${noteColor(task, colors)(note)}`;
  return widthOf(fixed) >= columns ? cut(fixed, columns - 1) : `${head}${middle}${shownNote}`.trimEnd();
}

/** How much of the task is done, when that is known. */
function shareOf(task: TaskProgress): number | null {
  if (isMapping(task)) return (task.items?.done ?? 0) / (task.items?.total ?? 1);
  return isWorking(task.status) ? task.progress : null;
}

/** How often the task was tried, when that was more than once. A map is not tried: its items are. */
function tries({ attempt, items }: TaskProgress): string {
  return attempt > 1 && items === null ? `×${attempt}` : '';
}

function symbol(task: TaskProgress, { frame }: Canvas): string {
  if (isWorking(task.status) || isMapping(task)) return SPINNER[frame % SPINNER.length] ?? '●';
  return task.status === 'QUEUED' && task.notBefore !== null && task.attempt > 0
    ? '↻'
    : symbolOf(task.status);
}

function isWaiting(task: TaskProgress): boolean {
  const { status } = task;
  if (isMapping(task)) return false;
  return status === 'PENDING' || status === 'READY' || status === 'QUEUED' || status === 'SKIPPED';
}

function elapsed(task: TaskProgress, now: number): string {
  const { startedAt, finishedAt, status } = task;
  if (startedAt === null) return '';
  if (isWorking(status) || isMapping(task)) return spanText(now - startedAt);
  return finishedAt === null ? '' : spanText(finishedAt - startedAt);
}

function progressBar(progress: number): string {
  const share = Math.min(1, Math.max(0, progress));
  const full = Math.round(share * BAR_COLUMNS);
  return `${'█'.repeat(full)}${'░'.repeat(BAR_COLUMNS - full)} ${Math.round(share * 100)}%`;
}

function noteOf(task: TaskProgress, now: number): string {
  const { status, notBefore, error, reason, message, items } = task;
  if (items !== null && (isMapping(task) || status === 'SUCCESS')) return itemsNote(items);
  if (status === 'FAILED') return oneLine(error ?? reason ?? '');
  if (status === 'QUEUED' && notBefore !== null) {
    const left = `${task.attempt > 0 ? 'again in' : 'waits'} ${spanText(notBefore - now)}`;
    return error === null ? left : oneLine(`${left}: ${error}`);
  }
  if (status === 'SKIPPED' || status === 'CANCELLED' || status === 'READY')
    return (reason ?? '').replaceAll('_', ' ');
  if (status === 'BLOCKED' || status === 'WAITING_INPUT') return 'waits for a decision';
  return isWorking(status) ? oneLine(message ?? '') : '';
}

function itemsNote({ total, done, failed, working }: NonNullable<TaskProgress['items']>): string {
  const counts = [
    [working, 'running'],
    [failed, 'failed'],
  ] as const;
  const rest = counts.flatMap(([count, name]) =>
    count === 0 ? [] : [`${count.toLocaleString('en')} ${name}`],
  );
  return [`${done.toLocaleString('en')} of ${total.toLocaleString('en')} items`, ...rest].join(' · ');
}

function noteColor({ status, notBefore }: TaskProgress, colors: Colors): (text: string) => string {
  if (status === 'FAILED') return colors.red;
  if (status === 'BLOCKED' || status === 'WAITING_INPUT') return colors.magenta;
  return status === 'QUEUED' && notBefore !== null ? colors.yellow : colors.dim;
}
