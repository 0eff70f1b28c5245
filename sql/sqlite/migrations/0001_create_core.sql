-- relay: breaking
-- The core of the store. Names are those of ARCHITECTURE.md; `key` columns are internal, `id` columns are public.
-- Times are milliseconds since the epoch; JSON is text made by JSON.stringify, so it holds no NUL and no lone surrogate.

create table workflows (
  name text not null,
  version integer not null,
  hash text not null,
  definition text not null,
  created_at integer not null,
  primary key (name, version)
) without rowid;

create table runs (
  key integer primary key autoincrement,
  id text not null unique,
  workflow_name text,
  workflow_version integer,
  status text not null default 'PENDING' check (status in ('PENDING', 'RUNNING', 'WAITING', 'SUCCESS', 'FAILED', 'CANCELLED')),
  stop_reason text,
  stopping integer not null default 0,
  cancelled integer not null default 0,
  paused integer not null default 0,
  is_open integer not null default 0,
  finishing integer not null default 0,
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
  active_ms integer not null default 0,
  active_since integer,
  version integer not null default 0,
  created_at integer not null,
  started_at integer,
  finished_at integer
);
create index runs_by_status on runs (status, key);
create index runs_by_workflow on runs (workflow_name, key);
create index runs_finishing on runs (key) where finishing = 1;

create table task_runs (
  key integer primary key autoincrement,
  id text not null unique,
  run_key integer not null,
  task_id text not null,
  map_index integer,
  status text not null default 'PENDING' check (
    -- A chain of comparisons, the usual ones first: `in` would cost a microsecond with every change.
    status = 'SUCCESS' or status = 'RUNNING' or status = 'QUEUED' or status = 'PENDING'
    or status = 'READY' or status = 'LEASED' or status = 'FAILED' or status = 'SKIPPED'
    or status = 'CANCELLED' or status = 'BLOCKED' or status = 'WAITING_INPUT'
  ),
  waiting_for text default 'dependency',
  reason text,
  undecided integer not null default 0,
  is_plain integer not null,
  is_finally integer not null,
  is_tolerated integer not null,
  priority integer not null,
  queue_key integer not null,
  deps_remaining integer not null,
  deps_ok integer not null,
  attempt integer not null default 0,
  attempts_spent integer not null default 0,
  losses integer not null default 0,
  releases integer not null default 0,
  unstarted integer not null default 0,
  generation integer not null default 0,
  version integer not null default 0,
  in_queue integer not null default 0,
  not_before integer,
  lease_id text,
  leased_by text,
  lease_expires_at integer,
  lease_ms integer,
  claim_id text,
  deadline_at integer,
  started_at integer,
  finished_at integer,
  timeout_ms integer,
  retry text,
  progress real,
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
);
create index task_runs_by_run on task_runs (run_key, key);
create index task_runs_leased on task_runs (lease_expires_at) where lease_id is not null;
create index task_runs_claim on task_runs (claim_id) where claim_id is not null;
create index task_runs_undecided on task_runs (key) where undecided = 1;
create index task_runs_ready on task_runs (run_key, priority desc, key) where status = 'READY';
create index task_runs_asking on task_runs (key) where question_id is not null;
create index task_runs_dead on task_runs (finished_at, key) where status = 'FAILED';

create table edges (
  parent integer not null,
  child integer not null,
  primary key (parent, child)
) without rowid;
create index edges_by_child on edges (child, parent);

create table queues (
  key integer primary key,
  handler text not null,
  worker text not null,
  unique (handler, worker)
);

create table claimable (
  queue_key integer not null,
  rank integer not null,
  task_key integer not null,
  run_key integer not null,
  primary key (queue_key, rank, task_key)
) without rowid;

create table timers (
  due_at integer not null,
  kind text not null,
  subject integer not null,
  primary key (due_at, kind, subject)
) without rowid;

create table cursors (
  key integer primary key autoincrement,
  kind text not null,
  run_key integer not null,
  subject integer not null,
  position integer not null,
  data text
);
create index cursors_by_run on cursors (run_key);

create table attempts (
  task_key integer not null,
  attempt integer not null,
  lease_id text not null,
  outcome text not null,
  digest text,
  answer text,
  error text,
  usage text,
  leased_by text,
  started_at integer,
  finished_at integer not null,
  acknowledged integer not null default 0,
  primary key (task_key, attempt)
) without rowid;

create table attempt_logs (
  key integer primary key autoincrement,
  task_key integer not null,
  attempt integer not null,
  at integer not null,
  stream text not null,
  text text not null
);
create index attempt_logs_by_task on attempt_logs (task_key, key);

create table artifacts (
  task_key integer not null,
  attempt integer not null,
  ordinal integer not null,
  kind text not null,
  name text not null,
  content_type text not null,
  bytes integer not null,
  inline blob,
  blob_ref text,
  created_at integer not null,
  primary key (task_key, attempt, ordinal)
) without rowid;
create index artifacts_by_blob on artifacts (blob_ref) where blob_ref is not null;

create table events (
  seq integer primary key autoincrement,
  run_key integer,
  task_key integer,
  type text not null,
  at integer not null,
  data text not null
);
create index events_by_run on events (run_key, seq);

create table context_snapshots (
  key integer primary key autoincrement,
  id text not null unique,
  run_key integer not null,
  task_key integer,
  parent_id text,
  label text,
  data text not null,
  created_by text,
  created_at integer not null
);
create index context_snapshots_by_run on context_snapshots (run_key, key);

create table idempotency (
  scope text not null,
  idempotency_key text not null,
  digest text not null,
  answer text not null,
  run_key integer,
  created_at integer not null,
  primary key (scope, idempotency_key)
) without rowid;

create table workers (
  id text primary key,
  boot_id text not null,
  host text not null,
  pid integer not null,
  process_start text,
  status text not null,
  info text not null,
  started_at integer not null,
  seen_at integer not null
) without rowid;
