-- relay: breaking
-- Named limits and the budgets of runs. A process that does not know them would hand out more than they allow.

alter table task_runs add column limits text;
alter table runs add column reserved text;

-- What limits and budgets hold back is found in held_tasks; admission passes it over.
drop index task_runs_ready;
create index task_runs_ready on task_runs (run_key, priority desc, key)
where status = 'READY' and map_slots is not 0 and waiting_for <> 'limit' and waiting_for <> 'budget';

create table limits (
  name text primary key,
  definition text not null,
  updated_at integer not null
) without rowid;

-- What an attempt was allowed. `held_until` is the end of its slot, `spent_at` the moment from which its requests and tokens
-- age; both lie beyond all time while they are not known.
create table limit_grants (
  limit_name text not null,
  task_key integer not null,
  attempt integer not null,
  requests integer not null,
  tokens integer not null,
  held_until integer not null,
  spent_at integer not null,
  primary key (task_key, attempt, limit_name)
) without rowid;
create index limit_grants_held on limit_grants (limit_name, held_until);
create index limit_grants_spent on limit_grants (limit_name, spent_at, requests, tokens);

create table held_tasks (
  place text not null,
  queue_key integer not null,
  rank integer not null,
  task_key integer not null,
  run_key integer not null,
  primary key (place, queue_key, rank, task_key)
) without rowid;
create index held_tasks_by_run on held_tasks (run_key, place, rank, task_key);
