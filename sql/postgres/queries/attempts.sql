-- How attempts ended, what they left, what they said.

-- name: attempts.find
-- $1 task keys, $2 attempts, side by side
select a.*
from unnest($1::bigint[], $2::bigint[]) u (task_key, attempt)
cross join lateral (
  select
    task_key, attempt, lease_id, outcome, digest, answer, error, usage, leased_by, started_at, finished_at,
    acknowledged
  from attempts
  where task_key = u.task_key and attempt = u.attempt
  offset 0
) a;

-- name: attempts.of_task
select
  task_key, attempt, lease_id, outcome, digest, answer, error, usage, leased_by, started_at, finished_at,
  acknowledged
from attempts
where task_key = $1
order by attempt;

-- name: attempts.acknowledge
-- $1 task keys, $2 attempts, $3 usages, side by side
update attempts a
set acknowledged = 1, usage = coalesce(a.usage, u.usage)
from (
  select x.place, w.usage
  from unnest($1::bigint[], $2::bigint[], $3::text[]) w (task_key, attempt, usage)
  cross join lateral (
    select ctid as place from attempts where task_key = w.task_key and attempt = w.attempt offset 0
  ) x
) u
where a.ctid = u.place;

-- name: artifacts.insert_bytes
insert into artifacts (
  task_key, attempt, ordinal, kind, name, content_type, bytes, inline, blob_ref, created_at
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: artifacts.find
-- $1 task keys, $2 attempts, $3 ordinals, side by side
select a.*
from unnest($1::bigint[], $2::bigint[], $3::bigint[]) u (task_key, attempt, ordinal)
cross join lateral (
  select task_key, attempt, ordinal, kind, name, content_type, bytes, inline, blob_ref, created_at
  from artifacts
  where task_key = u.task_key and attempt = u.attempt and ordinal = u.ordinal
  offset 0
) a;

-- name: artifacts.of_task
select
  task_key, attempt, ordinal, kind, name, content_type, bytes, inline, blob_ref, created_at
from artifacts
where task_key = $1
order by attempt, ordinal;

-- name: artifacts.blob_uses
select count(*) as n from artifacts where blob_ref = $1;

-- name: logs.append
insert into attempt_logs (task_key, attempt, at, stream, text)
select u.task_key, u.attempt, u.at, u.stream, u.text
from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::text[])
  with ordinality u (task_key, attempt, at, stream, text, place)
order by u.place;

-- name: logs.page
-- By the index that starts with the task, never along the primary key: see tasks.sql.
select key, attempt, at, stream, text
from attempt_logs
where task_key between $1 and $1 and key > $2
order by task_key, key
limit $3;

-- name: logs.page_of_run
-- Task by task, so that the logs of other runs are not walked over.
select l.key, t.id as task_run_id, t.task_id, l.attempt, l.at, l.stream, l.text
from (select key, id, task_id from task_runs where run_key between $1 and $1 offset 0) t
cross join lateral (
  select task_key, key, attempt, at, stream, text
  from attempt_logs
  where task_key between t.key and t.key and key > $2
  order by task_key, key
  limit $3
) l
order by l.key
limit $3;
