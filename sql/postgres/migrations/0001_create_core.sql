-- relay: breaking
-- The core of the store. Names are those of ARCHITECTURE.md; `key` columns are internal, `id` columns are public.
-- Times are milliseconds since the epoch; JSON is text made by JSON.stringify, so it holds no NUL and no lone surrogate.
-- Storage and vacuum settings, side tables and the lack of foreign keys are explained in docs/decisions/0005.

create table workflows (
  name text not null,
  version bigint not null,
  hash text not null,
  definition text not null,
  created_at bigint not null,
  primary key (name, version)
);

create table runs (
  key bigint generated always as identity primary key,
  id text collate "C" not null unique,
  workflow_name text,
  workflow_version integer,
  status text not null default 'PENDING' check (status in ('PENDING', 'RUNNING', 'WAITING', 'SUCCESS', 'FAILED', 'CANCELLED')),
  stop_reason text,
  stopping smallint not null default 0,
  cancelled smallint not null default 0,
  paused smallint not null default 0,
  is_open smallint not null default 0,
  finishing smallint not null default 0,
  priority integer not null default 0,
  settings text not null,
  inputs text not null,
  labels text not null,
  workdir text,
  cloned_from text,
  outputs text,
  error text,
  usage text,
  n_pending integer not null default 0,
  n_moving integer not null default 0,
  n_waiting integer not null default 0,
  n_success integer not null default 0,
  n_failed integer not null default 0,
  n_tolerated integer not null default 0,
  n_cancelled integer not null default 0,
  n_skipped integer not null default 0,
  n_ready integer not null default 0,
  n_queued integer not null default 0,
  n_leased integer not null default 0,
  n_cursors integer not null default 0,
  active_ms bigint not null default 0,
  active_since bigint,
  version bigint not null default 0,
  created_at bigint not null,
  started_at bigint,
  finished_at bigint
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
create index runs_by_status on runs (status, key);
create index runs_by_workflow on runs (workflow_name, key);
create index runs_finishing on runs (key) where finishing = 1;

create table task_runs (
  key bigint generated always as identity primary key,
  id text collate "C" not null unique,
  run_key bigint not null,
  task_id text not null,
  map_index integer,
  status text not null default 'PENDING' check (
    -- A chain of comparisons, the usual ones first.
    status = 'SUCCESS' or status = 'RUNNING' or status = 'QUEUED' or status = 'PENDING'
    or status = 'READY' or status = 'LEASED' or status = 'FAILED' or status = 'SKIPPED'
    or status = 'CANCELLED' or status = 'BLOCKED' or status = 'WAITING_INPUT'
  ),
  waiting_for text default 'dependency',
  reason text,
  undecided smallint not null default 0,
  is_plain smallint not null,
  is_finally smallint not null,
  is_tolerated smallint not null,
  priority integer not null,
  queue_key bigint not null,
  deps_remaining integer not null,
  deps_ok integer not null,
  attempt integer not null default 0,
  attempts_spent integer not null default 0,
  losses integer not null default 0,
  releases integer not null default 0,
  unstarted integer not null default 0,
  generation integer not null default 0,
  version bigint not null default 0,
  in_queue smallint not null default 0,
  not_before bigint,
  lease_id text,
  leased_by text,
  lease_expires_at bigint,
  lease_ms bigint,
  claim_id text,
  deadline_at bigint,
  started_at bigint,
  finished_at bigint,
  timeout_ms bigint,
  retry text,
  progress double precision,
  message text,
  checkpoint text,
  gate text,
  question text,
  question_id text,
  answers text,
  output_attempt integer,
  error text,
  usage text,
  spec text,
  check ((status = 'RUNNING' or status = 'LEASED') = (lease_id is not null and leased_by is not null and lease_expires_at is not null))
) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
create index task_runs_by_run on task_runs (run_key, key);

-- What would be partial indexes on task_runs elsewhere. There they would make every change of a status rewrite all indexes of
-- the row; here only rows that need finding cost anything. `tasks.save` keeps both tables in step with the rows.
create table leases (
  task_key bigint primary key,
  expires_at bigint not null,
  worker text not null,
  claim_id text
) with (
  fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 2000000000, vacuum_truncate = off
);
create index leases_by_claim on leases (claim_id) where claim_id is not null;

create table task_marks (
  kind text collate "C" not null check (kind in ('undecided', 'ready', 'asking', 'dead')),
  task_key bigint not null,
  run_key bigint not null,
  rank integer not null,
  primary key (kind, task_key)
) with (
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 2000000000, vacuum_truncate = off
);
create index task_marks_ready on task_marks (run_key, rank, task_key) where kind = 'ready';

create table edges (
  parent bigint not null,
  child bigint not null,
  primary key (parent, child)
);
create index edges_by_child on edges (child, parent);

create table queues (
  key bigint generated always as identity primary key,
  handler text not null,
  worker text not null,
  unique (handler, worker)
);

create table claimable (
  queue_key bigint not null,
  rank integer not null,
  task_key bigint not null,
  run_key bigint not null,
  primary key (queue_key, rank, task_key)
) with (
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 2000000000, vacuum_truncate = off
);

create table timers (
  due_at bigint not null,
  kind text not null,
  subject bigint not null,
  primary key (due_at, kind, subject)
) with (
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 2000000000, vacuum_truncate = off
);

create table cursors (
  key bigint generated always as identity primary key,
  kind text not null,
  run_key bigint not null,
  subject bigint not null,
  position bigint not null,
  data text
);
create index cursors_by_run on cursors (run_key);

create table attempts (
  task_key bigint not null,
  attempt integer not null,
  lease_id text not null,
  outcome text not null,
  digest text,
  answer text,
  error text,
  usage text,
  leased_by text,
  started_at bigint,
  finished_at bigint not null,
  acknowledged smallint not null default 0,
  primary key (task_key, attempt)
);

create table attempt_logs (
  key bigint generated always as identity primary key,
  task_key bigint not null,
  attempt integer not null,
  at bigint not null,
  stream text not null,
  text text not null
);
create index attempt_logs_by_task on attempt_logs (task_key, key);

create table artifacts (
  task_key bigint not null,
  attempt integer not null,
  ordinal integer not null,
  kind text not null,
  name text not null,
  content_type text not null,
  bytes bigint not null,
  inline bytea,
  blob_ref text,
  created_at bigint not null,
  primary key (task_key, attempt, ordinal)
);
create index artifacts_by_blob on artifacts (blob_ref) where blob_ref is not null;

-- Read in the order (xid, seq) below the oldest transaction under way; by seq alone a reader could pass over rows that are
-- numbered first and committed last. Within a run seq alone is enough: its events are written under its lock.
create table events (
  seq bigint generated always as identity,
  xid xid8 not null default pg_current_xact_id(),
  run_key bigint,
  task_key bigint,
  type text not null,
  at bigint not null,
  data text not null,
  primary key (xid, seq)
);
create index events_by_run on events (run_key, seq);

-- The last event that was ever pruned: a cursor before it may have missed something.
create table pruned_events (
  is_only boolean primary key default true check (is_only),
  xid xid8 not null,
  seq bigint not null
);

create table context_snapshots (
  key bigint generated always as identity primary key,
  id text collate "C" not null unique,
  run_key bigint not null,
  task_key bigint,
  parent_id text,
  label text,
  data text not null,
  created_by text,
  created_at bigint not null
);
create index context_snapshots_by_run on context_snapshots (run_key, key);

create table idempotency (
  scope text not null,
  idempotency_key text not null,
  digest text not null,
  answer text not null,
  run_key bigint,
  created_at bigint not null,
  primary key (scope, idempotency_key)
);

create table workers (
  id text primary key,
  boot_id text not null,
  host text not null,
  pid integer not null,
  process_start text,
  status text not null,
  info text not null,
  started_at bigint not null,
  seen_at bigint not null
);
