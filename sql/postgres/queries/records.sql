-- Workflows, context snapshots, idempotency records, workers.

-- name: workflows.latest
select name, version, hash, definition, created_at from workflows where name = $1 order by version desc limit 1;

-- name: workflows.get
select name, version, hash, definition, created_at from workflows where name = $1 and version = $2;

-- name: workflows.insert
insert into workflows (name, version, hash, definition, created_at) values ($1, $2, $3, $4, $5);

-- name: workflows.list
-- The newest version of each.
select w.name, w.version, w.hash, w.definition, w.created_at
from workflows w
where w.version = (select max(v.version) from workflows v where v.name = w.name)
order by w.name;

-- name: contexts.insert
insert into context_snapshots (id, run_key, task_key, parent_id, label, data, created_by, created_at)
values ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: contexts.of_run
select c.id, r.id as run_id, t.id as task_run_id, c.parent_id, c.label, c.data, c.created_by, c.created_at
from (
  select key, id, run_key, task_key, parent_id, label, data, created_by, created_at
  from context_snapshots
  where run_key between $1 and $1
  order by run_key, key
  offset 0
) c
cross join lateral (select id from runs where key = c.run_key offset 0) r
left join lateral (select id from task_runs where key = c.task_key offset 0) t on true
order by c.key;

-- name: idempotency.find
select scope, idempotency_key, digest, answer, run_key, created_at
from idempotency
where scope = $1 and idempotency_key = $2;

-- name: idempotency.record
insert into idempotency (scope, idempotency_key, digest, answer, run_key, created_at)
values ($1, $2, $3, $4, $5, $6);

-- name: idempotency.expire
-- The key of a start lives as long as its run.
delete from idempotency where run_key is null and created_at < $1;

-- name: workers.save
insert into workers (id, boot_id, host, pid, process_start, status, info, started_at, seen_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
on conflict (id) do update set
  boot_id = excluded.boot_id, host = excluded.host, pid = excluded.pid, process_start = excluded.process_start,
  status = excluded.status, info = excluded.info, started_at = excluded.started_at, seen_at = excluded.seen_at;

-- name: workers.list
select id, boot_id, host, pid, process_start, status, info, started_at, seen_at from workers order by started_at;

-- name: workers.remove
delete from workers where id = $1;
