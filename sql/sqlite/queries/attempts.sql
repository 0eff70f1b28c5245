-- How attempts ended, what they left, what they said.

-- name: attempts.find
select
  a.task_key, a.attempt, a.lease_id, a.outcome, a.digest, a.answer, a.error, a.usage, a.leased_by,
  a.started_at, a.finished_at, a.acknowledged
from json_each(?1) j
join attempts a on a.task_key = j.value ->> 0 and a.attempt = j.value ->> 1;

-- name: attempts.of_task
select
  task_key, attempt, lease_id, outcome, digest, answer, error, usage, leased_by, started_at, finished_at,
  acknowledged
from attempts
where task_key = ?1
order by attempt;

-- name: attempts.acknowledge
update attempts set acknowledged = 1, usage = coalesce(usage, j.value ->> 2)
from json_each(?1) j
where attempts.task_key = j.value ->> 0 and attempts.attempt = j.value ->> 1;

-- name: artifacts.insert_bytes
insert into artifacts (
  task_key, attempt, ordinal, kind, name, content_type, bytes, inline, blob_ref, created_at
)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10);

-- name: artifacts.find
-- The list holds [task_key, attempt, ordinal].
select
  a.task_key, a.attempt, a.ordinal, a.kind, a.name, a.content_type, a.bytes, a.inline, a.blob_ref,
  a.created_at
from json_each(?1) j
join artifacts a on a.task_key = j.value ->> 0 and a.attempt = j.value ->> 1 and a.ordinal = j.value ->> 2;

-- name: artifacts.of_task
select
  task_key, attempt, ordinal, kind, name, content_type, bytes, inline, blob_ref, created_at
from artifacts
where task_key = ?1
order by attempt, ordinal;

-- name: artifacts.blob_uses
select count(*) as n from artifacts where blob_ref = ?1;

-- name: logs.append
insert into attempt_logs (task_key, attempt, at, stream, text)
select j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3, j.value ->> 4
from json_each(?1) j
order by j.key;

-- name: logs.page
select key, attempt, at, stream, text
from attempt_logs
where task_key = ?1 and key > ?2
order by key
limit ?3;

-- name: logs.page_of_run
select l.key, t.id as task_run_id, t.task_id, l.attempt, l.at, l.stream, l.text
from attempt_logs l
join task_runs t on t.key = l.task_key
where t.run_key = ?1 and l.key > ?2
order by l.key
limit ?3;
