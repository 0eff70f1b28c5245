-- relay: compatible
-- What a broker is to be told. One row per task: a task is QUEUED once at a time, and a new entry takes the place of an old one.

-- due: 1 when it may be sent, 0 until `available_at`. owner and claimed_until are set while a daemon has the row in hand.
create table outbox (
  task_key bigint primary key,
  run_key bigint not null,
  queue_key bigint not null,
  rank integer not null,
  attempt integer not null,
  schema_version smallint not null default 1,
  due smallint not null,
  available_at bigint not null,
  created_at bigint not null,
  retries integer not null default 0,
  last_error text,
  owner text,
  claimed_until bigint
) with (
  fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 2000000000, vacuum_truncate = off
);
create index outbox_due on outbox (rank, task_key) where due = 1;
create index outbox_later on outbox (available_at) where due = 0;

-- Messages that were sent and not claimed yet; they are the window. A mark is over when its task is no longer claimable.
create table outbox_marks (
  task_key bigint primary key,
  queue_key bigint not null,
  rank integer not null,
  published_at bigint not null
) with (
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 2000000000, vacuum_truncate = off
);

-- Messages that the broker has refused too often. The task itself stays claimable.
create table dead_letters (
  key bigint generated always as identity primary key,
  task_key bigint not null,
  run_key bigint not null,
  queue_key bigint not null,
  rank integer not null,
  attempt integer not null,
  retries integer not null,
  last_error text,
  created_at bigint not null,
  died_at bigint not null
);
create index dead_letters_by_task on dead_letters (task_key);
create index dead_letters_by_run on dead_letters (run_key);

-- Names this store on a broker, so that two stores can share one.
create table outbox_home (
  is_only smallint primary key default 1 check (is_only = 1),
  id text not null
);
