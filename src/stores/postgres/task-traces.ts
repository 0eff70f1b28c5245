/** What task rows leave in the side tables: their lease, and a mark for each list in which they can be found. */
import { TASK_COLUMNS } from '../columns.ts';
import type { Transaction } from './transaction.ts';

const at = (column: (typeof TASK_COLUMNS)[number]): number => TASK_COLUMNS.indexOf(column);
const KEY = at('key');
const RUN_KEY = at('run_key');
const STATUS = at('status');
const WAITING_FOR = at('waiting_for');
const REASON = at('reason');
const UNDECIDED = at('undecided');
const PRIORITY = at('priority');
const LEASE_ID = at('lease_id');
const LEASED_BY = at('leased_by');
const EXPIRES_AT = at('lease_expires_at');
const CLAIM_ID = at('claim_id');
const QUESTION_ID = at('question_id');
const MAP_KEY = at('map_key');
const MAP_SLOTS = at('map_slots');

type List = readonly unknown[];

/** In which list a task is found, by name. */
const MARKS: Readonly<Record<string, (list: List) => boolean>> = {
  undecided: (list) => list[UNDECIDED] === 1,
  // What a limit or a budget holds back is not for admission.
  ready: (list) =>
    list[STATUS] === 'READY' &&
    list[MAP_SLOTS] !== 0 &&
    list[WAITING_FOR] !== 'limit' &&
    list[WAITING_FOR] !== 'budget',
  held: (list) => list[STATUS] === 'READY' && list[MAP_SLOTS] === 0,
  asking: (list) => list[QUESTION_ID] !== null,
  // Of a map whose items have failed, the items are dead and not the map.
  dead: (list) => list[STATUS] === 'FAILED' && list[REASON] !== 'purged' && list[REASON] !== 'items_failed',
};
const MARK_NAMES = Object.keys(MARKS);

/** Follows tasks from what they were to what they are, and writes the difference. */
export interface TaskTraces {
  follow(before: List | undefined, after: List): void;
  write(transaction: Transaction): void;
}

/** Starts with nothing. */
export function traceTask(): TaskTraces {
  const leased: List[] = [];
  const extended: List[] = [];
  const freed: number[] = [];
  const marked: { readonly kind: string; readonly list: List }[] = [];
  const unmarked = new Map<string, number[]>();
  return {
    follow(before, after) {
      const hadLease = before !== undefined && before[LEASE_ID] !== null;
      if (after[LEASE_ID] === null) {
        if (hadLease) freed.push(after[KEY] as number);
      } else if (!hadLease) leased.push(after);
      else if (before[LEASE_ID] !== after[LEASE_ID] || before[EXPIRES_AT] !== after[EXPIRES_AT])
        extended.push(after);
      for (const kind of MARK_NAMES) {
        const isMarked = MARKS[kind]?.(after) === true;
        const wasMarked = before !== undefined && MARKS[kind]?.(before) === true;
        if (isMarked && !wasMarked) marked.push({ kind, list: after });
        else if (wasMarked && !isMarked) {
          const keys = unmarked.get(kind);
          if (keys === undefined) unmarked.set(kind, [after[KEY] as number]);
          else keys.push(after[KEY] as number);
        }
      }
    },
    write(transaction) {
      if (freed.length > 0) transaction.later('leases.remove', freed);
      const write = (name: string, lists: readonly List[]): void => {
        const column = (index: number): never[] => lists.map((list) => list[index] as never);
        if (lists.length > 0) transaction.later(name, ...[KEY, EXPIRES_AT, LEASED_BY, CLAIM_ID].map(column));
      };
      write('leases.add', leased);
      write('leases.change', extended);
      for (const [kind, keys] of unmarked) transaction.later('marks.remove', kind, keys);
      if (marked.length > 0) {
        transaction.later(
          'marks.add',
          marked.map(({ kind }) => kind),
          marked.map(({ list }) => list[KEY] as number),
          marked.map(({ list }) => list[RUN_KEY] as number),
          marked.map(({ list }) => -(list[PRIORITY] as number)),
          marked.map(({ list }) => list[MAP_KEY] as number),
        );
      }
    },
  };
}
