-- relay: breaking
-- Named limits and the budgets of runs. A process that does not know them would hand out more than they allow.

alter table task_runs add column limits text;
alter table runs add column reserved text;

create table limits (
  name text collate "C" primary key,
  definition text not null,
  updated_at bigint not null
);

-- What an attempt was allowed. `held_until` is the end of its slot, `spent_at` the moment from which its requests and tokens
-- age; both lie beyond all time while they are not known.
create table limit_grants (
  limit_name text collate "C" not null,
  task_key bigint not null,
  attempt integer not null,
  requests bigint not null,
  tokens bigint not null,
  held_until bigint not null,
  spent_at bigint not null,
  primary key (task_key, attempt, limit_name)
) with (
  fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 2000000000, vacuum_truncate = off
);
create index limit_grants_held on limit_grants (limit_name, held_until);
create index limit_grants_spent on limit_grants (limit_name, spent_at);

create table held_tasks (
  place text collate "C" not null,
  queue_key bigint not null,
  rank integer not null,
  task_key bigint not null,
  run_key bigint not null,
  primary key (place, queue_key, rank, task_key)
) with (
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 2000000000, vacuum_truncate = off
);
create index held_tasks_by_run on held_tasks (run_key, place, rank, task_key);
