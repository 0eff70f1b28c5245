-- relay: breaking
-- Maps (`for_each`): a map row and one row per item. An older build would not tell a map of the end of its items.
-- On an item: whose it is, and whether it holds one of the map's slots. On a map: how many items there are, how many have failed,
-- how many slots are free (null without `max_parallel`).

alter table task_runs add column map_key integer;
alter table task_runs add column map_size integer;
alter table task_runs add column map_failed integer not null default 0;
alter table task_runs add column map_slots integer;

create unique index task_runs_items on task_runs (map_key, map_index) where map_key is not null;
-- Items that wait for a slot of their map do not stand in the way of tasks that wait for room in the run.
drop index task_runs_ready;
create index task_runs_ready on task_runs (run_key, priority desc, key) where status = 'READY' and map_slots is not 0;
-- Not by status, which changes with every move: the few items that wait elsewhere without a slot are passed over.
create index task_runs_held on task_runs (map_key, key) where map_slots = 0;
