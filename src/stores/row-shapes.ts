/** The tables whose rows are read as lists and written back by what has changed, for every dialect. */
import {
  fromRunRow,
  fromTaskRow,
  RUN_CHANGES,
  RUN_COLUMNS,
  TASK_CHANGES,
  TASK_COLUMNS,
  toRunRow,
  toTaskRow,
} from './columns.ts';
import type { RunRow, TaskRow } from './rows.ts';

/** How rows of a table travel. */
export interface RowShape<Row> {
  readonly table: 'runs' | 'task_runs';
  /** The columns of a list, in order. */
  readonly columns: readonly string[];
  /** Places in a list that can change. */
  readonly changing: readonly number[];
  readonly toRow: (list: readonly unknown[]) => Row;
  readonly toList: (row: Row) => unknown[];
}

export const RUN_SHAPE: RowShape<RunRow> = Object.freeze({
  table: 'runs',
  columns: RUN_COLUMNS,
  changing: RUN_CHANGES.map((column) => RUN_COLUMNS.indexOf(column)),
  toRow: toRunRow,
  toList: fromRunRow,
});

export const TASK_SHAPE: RowShape<TaskRow> = Object.freeze({
  table: 'task_runs',
  columns: TASK_COLUMNS,
  changing: TASK_CHANGES.map((column) => TASK_COLUMNS.indexOf(column)),
  toRow: toTaskRow,
  toList: fromTaskRow,
});
