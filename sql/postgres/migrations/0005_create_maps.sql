-- relay: breaking
-- Maps (`for_each`): a map row and one row per item. An older build would not tell a map of the end of its items.
-- On an item: whose it is, and whether it holds one of the map's slots. On a map: how many items there are, how many have failed,
-- how many slots are free (null without `max_parallel`).

alter table task_runs
  add column map_key bigint,
  add column map_size integer,
  add column map_failed integer not null default 0,
  add column map_slots integer;

-- Neither column ever changes, so the index keeps no update from staying on its page.
create unique index task_runs_items on task_runs (map_key, map_index) where map_key is not null;

-- Items that wait for a slot of their map do not stand in the way of tasks that wait for room in the run.
alter table task_marks add column map_key bigint;
alter table task_marks drop constraint task_marks_kind_check;
alter table task_marks add constraint task_marks_kind_check
  check (kind in ('undecided', 'ready', 'held', 'asking', 'dead'));
create index task_marks_held on task_marks (map_key, task_key) where kind = 'held';
