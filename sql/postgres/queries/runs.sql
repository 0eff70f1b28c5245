-- Runs. Lists of keys come as arrays. `save` and `insert` are built from the columns (see postgres/row-statements.ts).
-- A run's lock covers its tasks, timers, cursors and claimable rows (docs/decisions/0006).

-- define: run_row
  key, id, workflow_name, workflow_version, status, stop_reason, stopping, cancelled, paused, is_open,
  finishing, priority, settings, inputs, labels, workdir, cloned_from, outputs, error, usage, n_pending,
  n_moving, n_waiting, n_success, n_failed, n_tolerated, n_cancelled, n_skipped, n_ready, n_queued,
  n_leased, n_cursors, active_ms, active_since, version, created_at, started_at, finished_at, reserved

-- name: runs.by_keys
select r.*
from unnest($1::bigint[]) u (key)
cross join lateral (select :run_row: from runs where key = u.key offset 0) r;

-- define: meant_runs
  select m.key, max(m.writer) as writer
  from (
    select t.run_key as key, '' as writer
    from unnest($1::bigint[]) u (key)
    cross join lateral (select run_key from task_runs where key = u.key offset 0) t
    union all
    select u.key, u.writer from unnest($2::bigint[], $3::text[]) u (key, writer)
  ) m
  group by m.key
  order by m.key
  offset 0

-- define: run_unless_known
  xmin::text as writer, case when xmin::text = k.writer then null else json_build_array(:run_row:)::text end as list

-- name: runs.lock
-- $1 tasks whose runs are meant, $2 runs, $3 who wrote each of these last as far as we know: only what has changed since is sent.
-- Waits for every run, in key order. Behind the key: who wrote the run last, and who we are.
select k.key, r.writer, pg_current_xact_id()::text, r.list
from (:meant_runs:) k
cross join lateral (select :run_unless_known: from runs where key = k.key for no key update) r;

-- name: runs.lock_free
-- Never waits: a run that somebody holds is left out.
select k.key, r.writer, pg_current_xact_id()::text, r.list
from (:meant_runs:) k
cross join lateral (select :run_unless_known: from runs where key = k.key for no key update skip locked) r;

-- name: runs.expect
-- Takes runs that are as we know them. With any other the division fails, and with it the transaction, which starts again.
select pg_current_xact_id()::text, 1 / (count(*) = cardinality($1::bigint[]))::integer
from (
  select key, writer from unnest($1::bigint[], $2::text[]) u (key, writer) order by key offset 0
) k
cross join lateral (
  select 1 from (select xmin::text as writer from runs where key = k.key for no key update) l where l.writer = k.writer
) r;

-- name: runs.reserve
-- Keys for new rows, in order, with who we are.
select string_agg(nextval('runs_key_seq')::text, ','), pg_current_xact_id()::text from generate_series(1, $1::integer);

-- name: runs.touch
-- Something of these runs has changed, though not the row: whoever remembers them must notice.
update runs set version = version where key = any ($1::bigint[]);

-- name: runs.by_id
select :run_row: from runs where id = $1;

-- define: run_labelled
-- Compared as text: Postgres refuses to read JSON in which a NUL is escaped.
($4::text is null or strpos(labels, '{' || $4) > 0 or strpos(labels, ',' || $4) > 0)

-- name: runs.list
-- $1 before, $2 status, $3 workflow, $4 label as it stands in the JSON (`"name":"value"`), $5 limit; null is no filter.
select :run_row:
from runs
where key < coalesce($1::bigint, 9223372036854775807)
  and ($2::text is null or status = $2)
  and ($3::text is null or workflow_name = $3)
  and :run_labelled:
order by key desc
limit $5;

-- name: runs.list_by_status
-- The same where there is a status: along its index, which the order leaves no choice about.
select :run_row:
from runs
where (status, key) < ($2::text, coalesce($1::bigint, 9223372036854775807)) and status >= $2
  and ($3::text is null or workflow_name = $3)
  and :run_labelled:
order by status desc, key desc
limit $5;

-- name: runs.list_by_workflow
select :run_row:
from runs
where (workflow_name, key) < ($3::text, coalesce($1::bigint, 9223372036854775807)) and workflow_name >= $3
  and ($2::text is null or status = $2)
  and :run_labelled:
order by workflow_name desc, key desc
limit $5;

-- name: runs.finishing
select :run_row: from runs where finishing = 1 order by key limit $1;

-- name: runs.prunable
select :run_row:
from runs
where status = any ($1::text[]) and finished_at < $2::bigint
order by key
limit $3;

-- name: runs.prunable_locked
-- What somebody works on, or prunes already, is left to the next time.
select :run_row:
from runs
where status = any ($1::text[]) and finished_at < $2::bigint
order by key
limit $3
for no key update skip locked;

-- name: runs.blobs
-- Task by task, not along the index of all blobs.
select distinct a.blob_ref
from (select key from task_runs where run_key = any ($1::bigint[]) offset 0) t
cross join lateral (select blob_ref from artifacts where task_key = t.key offset 0) a
where a.blob_ref is not null;

-- name: runs.remove_logs
delete from attempt_logs
where task_key = any (array(select key from task_runs where run_key = any ($1::bigint[])));

-- name: runs.remove_attempts
delete from attempts
where task_key = any (array(select key from task_runs where run_key = any ($1::bigint[])));

-- name: runs.remove_artifacts
delete from artifacts
where task_key = any (array(select key from task_runs where run_key = any ($1::bigint[])));

-- name: runs.remove_edges
delete from edges
where parent = any (array(select key from task_runs where run_key = any ($1::bigint[])));

-- name: runs.remove_marks
delete from task_marks
where ctid = any (array(
  select m.place
  from (select key from task_runs where run_key = any ($1::bigint[]) offset 0) t
  cross join unnest(array['undecided', 'ready', 'held', 'asking', 'dead']) k (kind)
  cross join lateral (select ctid as place from task_marks where kind = k.kind and task_key = t.key offset 0) m
));

-- name: runs.remove_tasks
delete from task_runs where run_key = any ($1::bigint[]);

-- name: runs.remove_events
-- Remembers the last one that went, so that a cursor can be told what it has missed.
with gone as (
  delete from events where run_key = any ($1::bigint[]) returning xid, seq
)
insert into pruned_events (xid, seq)
select xid, seq from gone order by xid desc, seq desc limit 1
on conflict (is_only) do update set xid = excluded.xid, seq = excluded.seq
where (pruned_events.xid, pruned_events.seq) < (excluded.xid, excluded.seq);

-- name: runs.remove_contexts
delete from context_snapshots where run_key = any ($1::bigint[]);

-- name: runs.remove_idempotency
delete from idempotency where run_key = any ($1::bigint[]);

-- name: runs.remove
delete from runs where key = any ($1::bigint[]);
