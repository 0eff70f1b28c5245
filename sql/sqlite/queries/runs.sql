-- Runs. Lists of keys come as one JSON array, and rows go back as one: building a row column by column costs more than
-- the query itself. `save` is built from the changed columns (see save-statement.ts).

-- define: run_row
json_array(
  key, id, workflow_name, workflow_version, status, stop_reason, stopping, cancelled, paused, is_open,
  finishing, priority, settings, inputs, labels, workdir, cloned_from, outputs, error, usage, n_pending,
  n_moving, n_waiting, n_success, n_failed, n_tolerated, n_cancelled, n_skipped, n_ready, n_queued,
  n_leased, n_cursors, active_ms, active_since, version, created_at, started_at, finished_at, reserved
)

-- name: runs.by_keys
select json_group_array(:run_row:) as list
from (
  select * from runs where key in (select value from json_each(?1)) order by key
);

-- name: runs.by_id
select json_group_array(:run_row:) as list
from (
  select * from runs where id = ?1
);

-- define: run_labelled
-- Not by `->>`: a name that starts with $ would be read as a path.
(?4 is null or exists (select 1 from json_each(labels) l where l.key = ?4 and l.value = ?5))

-- name: runs.list
-- ?1 before, ?2 status, ?3 workflow, ?4 label name, ?5 label value, ?6 limit; null is no filter.
select json_group_array(:run_row:) as list
from (
  select * from runs
  where key < ifnull(?1, 9223372036854775807)
    and (?2 is null or status = ?2)
    and (?3 is null or workflow_name = ?3)
    and :run_labelled:
  order by key desc
  limit ?6
);

-- name: runs.list_by_status
-- The same where there is a status: along its index.
select json_group_array(:run_row:) as list
from (
  select * from runs indexed by runs_by_status
  where status = ?2 and key < ifnull(?1, 9223372036854775807)
    and (?3 is null or workflow_name = ?3)
    and :run_labelled:
  order by key desc
  limit ?6
);

-- name: runs.list_by_workflow
select json_group_array(:run_row:) as list
from (
  select * from runs indexed by runs_by_workflow
  where workflow_name = ?3 and key < ifnull(?1, 9223372036854775807)
    and (?2 is null or status = ?2)
    and :run_labelled:
  order by key desc
  limit ?6
);

-- name: runs.finishing
select json_group_array(:run_row:) as list
from (
  select * from runs where finishing = 1 order by key limit ?1
);

-- name: runs.prunable
select json_group_array(:run_row:) as list
from (
  select * from runs
  where status in (select value from json_each(?1)) and finished_at < ?2
  order by key
  limit ?3
);

-- name: runs.blobs
select distinct a.blob_ref
from artifacts a
join task_runs t on t.key = a.task_key
where t.run_key in (select value from json_each(?1)) and a.blob_ref is not null;

-- name: runs.remove_logs
delete from attempt_logs
where task_key in (select key from task_runs where run_key in (select value from json_each(?1)));

-- name: runs.remove_attempts
delete from attempts
where task_key in (select key from task_runs where run_key in (select value from json_each(?1)));

-- name: runs.remove_artifacts
delete from artifacts
where task_key in (select key from task_runs where run_key in (select value from json_each(?1)));

-- name: runs.remove_edges
delete from edges
where parent in (select key from task_runs where run_key in (select value from json_each(?1)));

-- name: runs.remove_tasks
delete from task_runs where run_key in (select value from json_each(?1));

-- name: runs.remove_events
delete from events where run_key in (select value from json_each(?1));

-- name: runs.remove_contexts
delete from context_snapshots where run_key in (select value from json_each(?1));

-- name: runs.remove_idempotency
delete from idempotency where run_key in (select value from json_each(?1));

-- name: runs.remove
delete from runs where key in (select value from json_each(?1));
