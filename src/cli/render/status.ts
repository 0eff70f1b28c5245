/** One symbol and one colour per status, the same in every view. */
import type { RunStatus, TaskStatus, WaitingFor } from '../../domain/states.ts';
import type { Colors } from '../io.ts';
import type { Cell } from './table.ts';

type Status = TaskStatus | RunStatus;
type Paint = 'green' | 'red' | 'yellow' | 'cyan' | 'magenta' | 'dim';

const LOOKS: Readonly<Record<Status, readonly [symbol: string, paint: Paint]>> = {
  PENDING: ['·', 'dim'],
  READY: ['○', 'dim'],
  QUEUED: ['○', 'dim'],
  LEASED: ['●', 'cyan'],
  RUNNING: ['●', 'cyan'],
  BLOCKED: ['?', 'magenta'],
  WAITING_INPUT: ['?', 'magenta'],
  WAITING: ['?', 'magenta'],
  SUCCESS: ['✓', 'green'],
  FAILED: ['✗', 'red'],
  CANCELLED: ['⊘', 'yellow'],
  SKIPPED: ['–', 'dim'],
};

/** The symbol of a status. */
export function symbolOf(status: Status): string {
  return LOOKS[status][0];
}

/** Paints text in the colour of a status. */
export function paintStatus(status: Status, colors: Colors): (text: string) => string {
  return colors[LOOKS[status][1]];
}

/** A status as a cell of a table. */
export function statusCell(status: Status, colors: Colors): Cell {
  return { text: `${symbolOf(status)} ${status}`, paint: paintStatus(status, colors) };
}

const WAITS: Readonly<Record<WaitingFor, string>> = {
  dependency: 'tasks that it needs have not ended',
  capacity: 'room: as many tasks are at work as `max_parallel` of the run or of its map allows',
  limit: 'room in a named limit',
  budget: 'room in the budget of the run',
  pool: 'a worker that can run it',
  person: 'a person, who must decide',
  time: 'its time',
  paused: 'the run to be resumed (it is paused)',
};

/** What a task waits for, in words. */
export function waitingText(waiting: WaitingFor, limit: string | null): string {
  return limit === null ? WAITS[waiting] : `room in the limit ${limit}`;
}
