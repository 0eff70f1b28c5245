/** An event as one line. */
import type { EventView } from '../../app/api.ts';
import type { Colors } from '../io.ts';
import { oneLine } from './text.ts';

/** Cursor, time, type, run, task, and what changed. */
export function renderEvent(event: EventView, colors: Colors): string {
  const { from, to, reason, error, by } = event.data as Readonly<Record<string, unknown>>;
  const change = from !== undefined && to !== undefined && from !== to ? `${from} → ${to}` : '';
  const message =
    typeof error === 'object' && error !== null && 'message' in error ? String(error.message) : '';
  const place = event.map_index === null ? '' : `[${event.map_index}]`;
  const words = [
    `${event.task_id ?? ''}${place}`,
    change,
    reason ?? '',
    by === undefined ? '' : `by ${by}`,
    message,
  ];
  const rest = words.filter((word) => word !== '').map((word) => oneLine(String(word)));
  const run = event.run_id === null ? '' : ` ${colors.dim(event.run_id)}`;
  return `${colors.dim(`${event.cursor.padStart(6)} ${event.at}`)} ${event.type.padEnd(20)}${run} ${rest.join('  ')}\n`;
}
